// Long texts of which only slices are needed.

/**
 * How much of a text is one string, in units. V8 gives strings of this size a separate page among the young
 * objects, and the room for these is small at first: several of them in a row trigger collections that cost
 * next to nothing, because such a page is not copied but becomes old in place. All of it survives, so V8 makes
 * more room, and expects the same of what follows: a start with many modules gets through with fewer
 * collections, and ends before V8 begins to mark. One long string would do the opposite.
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

/** A string of the first bytes, with one or two bytes per letter. */
export function textOf(bytes: Buffer, length: number, unitBytes: 1 | 2): string {
  const slices = bytes as BufferWithSlices;
  return unitBytes === 1 ? slices.latin1Slice(0, length) : slices.ucs2Slice(0, length);
}

// Undocumented, but in every release; twice as fast as toString() for small slices, because it checks less.
interface BufferWithSlices extends Buffer {
  latin1Slice(start: number, end: number): string;
  ucs2Slice(start: number, end: number): string;
}
