// Long texts of which only slices are wanted.

/**
 * How much of a text is one string, in units. V8 gives strings of this size a page of their own among the young objects, and the room for these is small
 * at first: some of them in a row bring about collections that cost next to nothing, as such a page is not copied but becomes old where it is. All of it
 * survives, so V8 makes more room, and expects the like of what follows: a start of many modules is through with fewer collections, and ends before V8
 * begins to mark. One long string would do the opposite.
 */
export const PIECE_UNITS = 256 * 1024;

export class Text {
  constructor(private readonly pieces: readonly string[]) {}

  slice(begin: number, end: number): string {
    let text = '';
    for (let at = begin; at < end; ) {
      const piece = Math.floor(at / PIECE_UNITS);
      const start = piece * PIECE_UNITS;
      const part = this.pieces[piece]!.slice(at - start, Math.min(end - start, PIECE_UNITS));
      text = text === '' ? part : text + part;
      at = start + PIECE_UNITS;
    }
    return text;
  }
}

/** A string of the first bytes, each of which is a letter, or each two of which are. */
export function textOf(bytes: Buffer, length: number, unitBytes: 1 | 2): string {
  const slices = bytes as BufferWithSlices;
  return unitBytes === 1 ? slices.latin1Slice(0, length) : slices.ucs2Slice(0, length);
}

// Documented nowhere, there in every release; twice as fast as toString() for small slices, as it checks less.
interface BufferWithSlices extends Buffer {
  latin1Slice(start: number, end: number): string;
  ucs2Slice(start: number, end: number): string;
}
