/** Links of the head, by key: that to "now" has the filters. */
const VIEWS: Readonly<Record<string, string>> = { n: "now", b: "blocked", w: "wait-times", Escape: "now" };

/**
 * All can be done without a mouse. Nothing is taken from somebody who types, nor from the browser's
 * own keys.
 */
export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    if (ctrlKey || metaKey || altKey || document.querySelector("dialog[open]")) return;
    const search = document.getElementById("search");
    if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) {
      if (key === "Escape") target.blur();
      else if (key === "ArrowDown" && target === search) move(event, 1);
      return;
    }
    const view = VIEWS[key];
    if (view !== undefined) document.querySelector<HTMLElement>(`nav [data-view=${view}]`)?.click();
    else if (key === "/" && search) {
      event.preventDefault();
      search.focus();
    } else if (key === "j" || key === "ArrowDown") move(event, 1);
    else if (key === "k" || key === "ArrowUp") move(event, -1);
  });
}

function move(event: Event, by: number): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>("main a.name")];
  const at = links.indexOf(document.activeElement as HTMLAnchorElement);
  const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
  if (!next) return;
  event.preventDefault();
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}
