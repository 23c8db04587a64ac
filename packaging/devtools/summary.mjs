// node summary.mjs FILE: what Chrome DevTools shows of a heap snapshot, as its own worker computes it. JSON: all constructors
// of the summary view, and the objects that retain most.
import fs from 'node:fs';
import { MessageChannel } from 'node:worker_threads';
import { HeapSnapshot, HeapSnapshotLoader } from 'chrome-devtools-frontend/front_end/entrypoints/heap_snapshot_worker/heap_snapshot_worker.js';
import { NodeFilter } from 'chrome-devtools-frontend/front_end/models/heap_snapshot/HeapSnapshotModel.js';

const LARGEST = 100;

async function open(file) {
  const loader = new HeapSnapshotLoader.HeapSnapshotLoader({ sendEvent() {} });
  for await (const piece of fs.createReadStream(file, 'utf8')) loader.write(piece);
  loader.close();
  // A part is computed in a second worker of DevTools; here both are in this thread.
  const { port1, port2 } = new MessageChannel();
  new HeapSnapshot.SecondaryInitManager(port2);
  const snapshot = await loader.buildSnapshot(port1);
  port1.close();
  return snapshot;
}

function constructors(snapshot) {
  const all = Object.values(snapshot.aggregatesWithFilter(new NodeFilter()));
  return all.map(({ name, count, self, maxRet }) => ({ name, count, shallow_bytes: self, retained_bytes: maxRet }));
}

// Strings may be outside of the heap.
function largest(snapshot) {
  const { nodeCount, nodeFieldCount, retainedSizes } = snapshot;
  const nodes = Array.from({ length: nodeCount }, (_, ordinal) => snapshot.createNode(ordinal * nodeFieldCount));
  const objects = nodes.filter((node) => node.selfSize() > 0 && node.type() === 'object');
  objects.sort((a, b) => b.retainedSize() - a.retainedSize());
  return objects.slice(0, LARGEST).map((node) => ({ name: node.name(), retained_bytes: node.retainedSize() }));
}

const snapshot = await open(process.argv[2]);
console.log(JSON.stringify({ constructors: constructors(snapshot), largest: largest(snapshot) }));
