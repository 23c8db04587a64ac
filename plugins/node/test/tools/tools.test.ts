// Programs of the npm registry, with and without the plugin (scripts/node-tools.sh).
import { onEach } from '../support/releases';
import { PROGRAMS } from './programs';
import { installation, project } from './project';
import { trial } from './series';

if (installation) {
  for (const { run, ...program } of PROGRAMS) {
    onEach(run.replace('node_modules/', ''), (release, t) => trial(t, project(t, installation!), release, { ...program, args: run.split(' ') }), program);
  }
}
