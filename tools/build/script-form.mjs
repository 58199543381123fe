// Reads from the header of a script what it takes and what it answers:
//
//   ARGV     numbered names, in order: `1 hold   2 lease ms`. One that may be left out at the end
//            has a question mark: `4 entry?`. The last may be a list: `5 refs...`. `for each lock:`
//            comes before those that are repeated. Or `none`.
//   RETURNS  one reply after another: a code, or a list in braces that begins with a code or has
//            none: `{ OWNER, at µs, token, waits 0|1 }`. `A | B` before the fields: either code. A
//            field is a name and a type, see `Value` in src/redis/codec.ts; without a type the name
//            is the type. `told? 0..2`: it may be missing at the end. `...all { … }`: rows until the
//            end of the list. `one { … }`: a list of its own, `each [ … ]`: one with many rows.
//
// A reply that is no list counts as a list of one.
// `as acquire`: that of another script of the folder. `as SET`: that of a command, of any form.
//
// Everything else is for people: text after two spaces, and lines that begin with neither.

import { join } from "node:path/posix";

const CODES = /^[A-Z]+$/;

/** The lines of one part of a header, without their indentation. */
function linesOf(source, word) {
  const [, text] = new RegExp(`^-- ${word} +(.*(?:\\n--   .*)*)`, "m").exec(source) ?? [];
  return (text ?? "").split("\n").map((line) => line.replace(/^--/, ""));
}

function argumentsOf(lines, refuse) {
  const args = [];
  const more = [];
  for (const [, number, name, mark] of lines
    .join("\n")
    .matchAll(/(?:^|\s{2}|: )(\d+) ([a-z][A-Za-z]*)(\?|\.\.\.|)(?=\s|$)/g)) {
    const known = args.length + more.length;
    if (Number(number) !== known + 1) refuse(`argument ${number} comes after ${known}`);
    if (mark === "?") more.push(name);
    else if (more.length > 0) refuse(`${name} comes after one that may be left out`);
    else args.push(name);
  }
  if (args.length + more.length === 0 && !/^none/.test(lines[0])) refuse("no argument has a name");
  const each = lines[0].startsWith("for each ") && { each: true };
  return { args, ...(more.length > 0 && { more }), ...each };
}

/** Reads rows from words: names, types, codes, and signs. */
class Rows {
  #words;
  #refuse;
  #at = 0;

  constructor(text, refuse) {
    this.#words = text.match(/[{}[\],]|(?:\.\.\.)?[^\s{}[\],]+/g) ?? [];
    this.#refuse = refuse;
  }

  get isOver() {
    return this.#at >= this.#words.length;
  }

  #take(word) {
    if (this.#words[this.#at] !== word) return false;
    this.#at++;
    return true;
  }

  /** One reply, or one row: added to `rows` under each of its codes. A list has these signs. */
  add(rows, [open, close] = "{}") {
    const isList = this.#take(open);
    const codes = [];
    while (CODES.test(this.#words[this.#at])) {
      codes.push(this.#words[this.#at++].toLowerCase());
      if (!this.#take("|")) break;
    }
    const row = {};
    if (isList) {
      if (codes.length > 0 && this.#words[this.#at] !== close && !this.#take(","))
        this.#refuse("a comma is missing");
      this.#fields(row, close);
    } else if (codes.length === 0) this.#refuse(`neither a code nor a list: ${this.#words[this.#at]}`);
    const known = Object.keys(rows).flatMap((key) => key.split("|"));
    for (const code of codes.length > 0 ? codes : [""])
      if (known.includes(code)) this.#refuse(`two replies with ${code || "no code"}`);
    // Replies with the same fields share them.
    const same = Object.keys(rows).find((key) => key && JSON.stringify(rows[key]) === JSON.stringify(row));
    if (same !== undefined) delete rows[same];
    rows[[...(same?.split("|") ?? []), ...codes].join("|")] = row;
  }

  #fields(row, end) {
    while (!this.#take(end)) {
      const name = this.#words[this.#at++];
      if (!/^(\.\.\.)?[a-z][A-Za-z]*\??$/.test(name ?? "")) this.#refuse(`no name of a field: ${name}`);
      if (name in row) this.#refuse(`two fields with the name ${name}`);
      row[name] = this.#type(name, end);
      if (!this.#take(",") && this.#words[this.#at] !== end) this.#refuse(`a comma is missing after ${name}`);
    }
  }

  #type(name, end) {
    const word = this.#words[this.#at];
    if (word === "{" || word === "[") {
      const rows = {};
      this.add(rows, word === "{" ? "{}" : "[]");
      return word === "{" ? rows : [rows];
    }
    const type = word === "," || word === end ? name : this.#words[this.#at++];
    if (!/^(µs|ms|token|text|0|-1\.\.|0\.\.[12]?|0\|1|[a-z](\|[a-z])+)$/.test(type))
      this.#refuse(`no type: ${type}`);
    return type;
  }
}

function repliesOf(lines, refuse) {
  // A list in braces may take several lines; what comes after it on its last one is for people.
  let text = "";
  let depth = 0;
  for (const [i, line] of lines.entries()) {
    const own = i === 0 ? line : line.slice("-- RETURNS ".length - "--".length);
    if (depth === 0 && !/^([{]|[A-Z]+( {2}|$))/.test(own)) continue;
    for (const piece of own.trimEnd().split(/ {2,}/)) {
      text += ` ${piece}`;
      depth += (piece.match(/[{[]/g) ?? []).length - (piece.match(/[}\]]/g) ?? []).length;
      if (depth === 0) break;
    }
  }
  const rows = new Rows(text, refuse);
  const replies = {};
  while (!rows.isOver) rows.add(replies);
  if (Object.keys(replies).length === 0) refuse("no reply is defined");
  return replies;
}

/**
 * What a script takes and answers; null: as a command. `read`: the text of a file of lua/.
 *
 * @throws Error if its header is written in another way
 */
export function formOf(path, read) {
  const source = read(path);
  const refuse = (why) => {
    throw new Error(`lua/${path}: its header cannot be read: ${why}`);
  };
  const returns = linesOf(source, "RETURNS");
  if (/^as (the )?[A-Z]/.test(returns[0])) return null;
  const [, other] = /^as ([a-z-]+)/.exec(returns[0]) ?? [];
  if (other !== undefined) return formOf(join(path, "..", `${other}.lua`), read);
  return { ...argumentsOf(linesOf(source, "ARGV"), refuse), replies: repliesOf(returns, refuse) };
}
