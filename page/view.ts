import type { Shown } from "../src/tools/ui/shown.ts";

/** One of the views. It is begun once, and shows each look after the other. */
export interface View<S extends Shown> {
  begin(view: Element): void;
  show(seen: S): void;
}
