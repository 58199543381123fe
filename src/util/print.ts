import { type InspectOptionsStylized, inspect } from "node:util";
import { harmless } from "./visible.ts";

/** What an object is printed as, and turned into by `JSON.stringify`. */
interface Printed {
  toJSON(): object;
}

/**
 * Has `console.log` show an object by its name and what `toJSON()` gives. Private fields are not
 * shown otherwise, so that it would be an empty object.
 */
export function inspectAs(kind: { readonly prototype: Printed }, name: string): void {
  Object.defineProperty(kind.prototype, inspect.custom, {
    configurable: true,
    value(this: Printed, _depth: number, options: InspectOptionsStylized): string {
      // Controls are escaped by then, but for its own line feeds and colours.
      return `${name} ${inspect(this.toJSON(), options).replace(/\P{Cc}+/gu, harmless)}`;
    },
  });
}
