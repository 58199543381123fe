/**
 * Was one of the caller's objects closed? Not every version emits an event for that, and an object
 * that was never opened is not open either. So an object counts as closed if it was open before and
 * is not any more.
 */
export class Lifetime {
  readonly #object: { readonly isOpen: boolean };
  #wasOpen: boolean;

  constructor(object: { readonly isOpen: boolean }) {
    this.#object = object;
    this.#wasOpen = object.isOpen;
  }

  get isOver(): boolean {
    this.#wasOpen ||= this.#object.isOpen;
    return this.#wasOpen && !this.#object.isOpen;
  }

  /** It was open just now, and may already be closed again. */
  wasOpened(): void {
    this.#wasOpen = true;
  }
}
