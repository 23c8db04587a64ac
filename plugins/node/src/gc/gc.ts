// The recorder of garbage collections, loaded by register.ts once the program has settled. Nothing in here may keep the
// process alive, end it, or reach its error handlers.
import { isWorker } from '../surroundings';
import { Channel } from './channel';
import { Recorder } from './recorder';
import { openFolder } from './runtime';

/** Opens the control channel, and starts recording if HASTEN_NODE_GC asks for it. */
export function start(): void {
  const wish = process.env['HASTEN_NODE_GC'];
  if (wish === '0' || isWorker()) return;
  try {
    const recorder = new Recorder();
    if (wish === 'record') recorder.record(null);
    const folder = openFolder('node');
    if (folder) new Channel(recorder, folder).open();
  } catch {
    // Without a recorder, the program is as good as it was.
  }
}
