// All that is shown goes through here, as text and never as markup: names of locks are anybody's.

/** An element of index.html. */
export function at(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no ${id}`);
  return element;
}

type Child = Node | string | null | false;
type Properties = Record<string, string | boolean | EventListener | null>;

/** An element with attributes, listeners (functions, by the name of their event) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, properties);
  element.append(...kept(children));
  return element;
}

/** The same of a picture. */
export function svg(tag: string, properties: Properties = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, properties);
  element.append(...kept(children));
  return element;
}

const kept = (children: readonly Child[]): (Node | string)[] =>
  children.filter((child) => child !== null && child !== false);

function fill(element: Element, properties: Properties): void {
  for (const [name, value] of Object.entries(properties))
    if (typeof value === "function") element.addEventListener(name, value);
    else if (typeof value === "string") element.setAttribute(name, value);
    else if (value) element.setAttribute(name, "");
}

/** Only where it differs: a text that somebody has selected stays selected. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Puts these in place of what is there, and moves only what does not stand where it belongs. */
export function arrange(parent: Element, wanted: readonly Element[]): void {
  const focused = document.activeElement;
  const index = [...parent.children].findIndex((one) => one.contains(focused));
  let place = parent.firstElementChild;
  for (const one of wanted) {
    if (one === place) place = place.nextElementSibling;
    else parent.insertBefore(one, place);
  }
  while (place) {
    const next = place.nextElementSibling;
    place.remove();
    place = next;
  }
  // What is moved loses the focus; where it has gone, the link in its place gets it.
  if (index < 0 || focused === document.activeElement || !(focused instanceof HTMLElement)) return;
  const next = parent.contains(focused) ? focused : parent.children[Math.min(index, wanted.length - 1)];
  const target = next === focused ? focused : next?.querySelector<HTMLElement>("a");
  target?.focus({ preventScroll: true });
}
