import { type InspectOptionsStylized, inspect } from "node:util";
import { harmless } from "./visible.ts";

/** An object's printed form, also for `JSON.stringify`. */
interface Printed {
  toJSON(): object;
}

/**
 * Makes `console.log` show an object as its name and the result of `toJSON()`. It does not show
 * private fields, so the object would look empty.
 */
export function inspectAs(kind: { readonly prototype: Printed }, name: string): void {
  Object.defineProperty(kind.prototype, inspect.custom, {
    configurable: true,
    value(this: Printed, _depth: number, options: InspectOptionsStylized): string {
      // Control characters are escaped by now, except its own line feeds and colours.
      return `${name} ${inspect(this.toJSON(), options).replace(/\P{Cc}+/gu, harmless)}`;
    },
  });
}
