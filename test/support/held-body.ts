/** A body that ends when `leave` is called; `isInside` resolves when it has begun. */
export function heldBody() {
  let leave = (): void => {};
  let enter = (): void => {};
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const isInside = new Promise<void>((resolve) => {
    enter = resolve;
  });
  const run = (): Promise<void> => {
    enter();
    return left;
  };
  return { run, isInside, leave: () => leave() };
}
