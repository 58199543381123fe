import type { deadlocksLua } from "../../redis/lua.generated.ts";
import type { Kept, Memory, One, Reply, Run } from "./memory.ts";

/**
 * The note of a wait: its line, which begins with the locks that it wants; and the locks that its
 * scope holds.
 */
interface Note extends Kept {
  readonly text: string;
  readonly held: readonly string[];
}

/** By wait. */
interface Notes extends Kept {
  readonly notes: Map<string, Note>;
}

/**
 * A wait, for how many ms its note counts (0: it is removed), the note, and how many of the
 * following locks its scope holds.
 */
type Left = readonly [string, number, string, number, ...string[]];

const wantedBy = (text: string): string[] => text.split(" ", 1)[0]?.split(",") ?? [];

/** The script of callers that may wait for each other. */
export function waits(db: Memory): Record<keyof typeof deadlocksLua, Run> {
  const note = ([key]: One, [id, life, text, many, ...refs]: Left): Reply => {
    const { notes } = db.get<Notes>(key) ?? db.keep(key, { notes: new Map<string, Note>() });
    notes.delete(id);
    for (const [other, { until }] of notes) if (until <= db.now) notes.delete(other);
    if (life > 0) notes.set(id, { text, held: refs.slice(0, many), until: db.after(life) });
    if (notes.size === 0) db.drop(key);
    const found = new Map<string, string>();
    // The set grows while it is read: from note to note.
    const wanted = new Set(life > 0 ? wantedBy(text) : []);
    for (const ref of wanted)
      for (const [other, { text, held }] of notes)
        if (other !== id && held.includes(ref)) {
          found.set(other, text);
          for (const next of wantedBy(text)) wanted.add(next);
        }
    return [db.now, ...[...found].map((words) => words.join(" "))];
  };
  return { note };
}
