// The contents of a folder, for comparing and restoring them.
import fs from 'node:fs';
import path from 'node:path';

export class Tree {
  private constructor(
    private readonly folder: string,
    /** By relative path: the content of a file, the target of a link, null for a folder. */
    private readonly entries: ReadonlyMap<string, Buffer | string | null>,
  ) {}

  static of(folder: string): Tree {
    const entries = new Map<string, Buffer | string | null>();
    const walk = (relative: string): void => {
      for (const entry of fs.readdirSync(path.join(folder, relative), { withFileTypes: true })) {
        const name = path.join(relative, entry.name);
        const full = path.join(folder, name);
        if (entry.isSymbolicLink()) entries.set(name, fs.readlinkSync(full));
        else if (entry.isFile()) entries.set(name, fs.readFileSync(full));
        else if (entry.isDirectory()) entries.set(name, null);
        if (entry.isDirectory()) walk(name);
      }
    };
    walk('');
    return new Tree(folder, entries);
  }

  /** What is new or different here, as text. */
  since(before: Tree): Record<string, string> {
    const news: Record<string, string> = {};
    for (const [name, content] of this.entries) {
      if (!before.has(name, content)) news[name] = content instanceof Buffer ? content.toString('latin1') : `${content}`;
    }
    for (const name of before.entries.keys()) if (!this.entries.has(name)) news[name] = 'gone';
    return news;
  }

  /** Removes what is new, and rewrites what has changed. */
  restore(): void {
    const now = Tree.of(this.folder);
    for (const [name, content] of now.entries) if (!this.has(name, content)) fs.rmSync(path.join(this.folder, name), { recursive: true, force: true });
    for (const [name, content] of this.entries) {
      if (now.has(name, content)) continue;
      if (content === null) fs.mkdirSync(path.join(this.folder, name));
      else if (typeof content === 'string') fs.symlinkSync(content, path.join(this.folder, name));
      else fs.writeFileSync(path.join(this.folder, name), content);
    }
  }

  private has(name: string, content: Buffer | string | null): boolean {
    const own = this.entries.get(name);
    return own === content || (own instanceof Buffer && content instanceof Buffer && own.equals(content));
  }
}
