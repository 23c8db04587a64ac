// A cache file in the making.
import path = require('node:path');
import type { Catalog } from './catalog';
import type { Facts, FileNumbers, PackageFile } from './facts';
import type { Proof } from './resolve';

export interface DraftFile {
  readonly directory: string;
  readonly package: Pick<PackageFile, 'path' | 'numbers'> | null;
  readonly numbers: FileNumbers;
  readonly flags: number;
  readonly source: string;
  bytecode: Buffer | null;
}

export interface DraftRequest {
  readonly answer: string;
  readonly directories: Iterable<string>;
  readonly packages: Iterable<Pick<PackageFile, 'path' | 'numbers'>>;
}

export class Draft {
  /** Files of this start, in the order in which it loaded them. */
  readonly files = new Map<string, DraftFile>();
  /** Files of earlier starts that this one did not need. */
  readonly others = new Map<string, DraftFile>();
  /** By directory, then by request. */
  readonly requests = new Map<string, Map<string, DraftRequest>>();

  /** Recordings in a row, this one included, that added next to nothing. */
  futile = 0;

  constructor(
    readonly key: string,
    readonly facts: Facts,
  ) {}

  addRequest(directory: string, request: string, answer: string, proof: Proof): void {
    this.requestsOf(directory).set(request, { answer, directories: proof.directories, packages: proof.packages });
  }

  addFile(filename: string, file: DraftFile): void {
    this.files.set(filename, file);
  }

  /** Takes over what an earlier cache knew and this start has not contradicted. */
  keep(catalog: Catalog): void {
    const unchanged = catalog.comparison(this.facts);
    for (const { directory, request, answer, directories, packages } of catalog.requests()) {
      const requests = this.requestsOf(directory);
      if (!requests.has(request) && directories.every(unchanged)) requests.set(request, { answer, directories, packages });
    }
    for (const [filename, number] of catalog.files()) {
      if (this.files.has(filename)) continue;
      const file = catalog.export(number);
      const directory = path.dirname(filename);
      if (file && unchanged(directory)) this.others.set(filename, { ...file, directory });
    }
  }

  private requestsOf(directory: string): Map<string, DraftRequest> {
    let found = this.requests.get(directory);
    if (!found) this.requests.set(directory, (found = new Map()));
    return found;
  }
}
