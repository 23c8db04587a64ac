// Servers, libraries and Node's own modes, with and without the plugin (scripts/node-tools.sh).
import { onEach } from '../support/releases';
import { LIBRARIES } from './libraries';
import { MODES, PROGRAM } from './modes';
import { installation, project } from './project';
import { trial } from './series';

if (installation) {
  for (const [name, text] of Object.entries(LIBRARIES)) {
    onEach(`a program with ${name}`, async (release, t) => {
      const app = project(t, installation!);
      app.write('main.js', text);
      await trial(t, app, release, { args: ['main.js'] });
    }, name === 'cheerio' ? { from: 20 } : {});
  }
  for (const { options = [], ...mode } of MODES) {
    const variables = Object.entries(mode.env ?? {}).map((pair) => pair.join('='));
    onEach(`${[...variables, 'node', ...options].join(' ')}`, async (release, t) => {
      const app = project(t, installation!);
      app.write('main.js', PROGRAM);
      app.write('variables.env', 'FROM_FILE=1\n');
      await trial(t, app, release, { code: 3, ...mode, args: [...options, 'main.js'] });
    }, mode);
  }
}
