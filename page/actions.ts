import type { Action, Done, ShownHolder, ShownLock } from "../src/tools/ui/shown.ts";
import { harmless, visible } from "../src/util/visible.ts";
import { h, say } from "./dom.ts";
import { nameOf } from "./format.ts";

type Lock = Pick<ShownLock, "kind" | "name">;

/** Asks the server for something, by what nothing but this page can send. */
export async function post<D extends Done>(part: `?part=${string}`, wanted: object): Promise<D | Done> {
  try {
    const answer = await fetch(part, {
      method: "POST",
      headers: { "content-type": "application/json", "x-holdfast": "page" },
      body: JSON.stringify(wanted),
    });
    const text = await answer.text();
    return answer.headers.get("content-type")?.startsWith("application/json")
      ? (JSON.parse(text) as D)
      : { done: false, said: text };
  } catch {
    return {
      done: false,
      said: "The server of this page did not answer: so it is not known whether it was done.",
    };
  }
}

const act = (action: Action, { kind, name }: Lock, { id: holder, mode }: ShownHolder): Promise<Done> =>
  post("?part=act", { action, kind, name, mode, holder });

export async function recallLock(lock: Lock, holder: ShownHolder): Promise<void> {
  tell(await act("recall", lock, holder));
}

/**
 * Force-releases a hold, after the name has been typed: the hold that was shown when this was
 * opened, whatever comes meanwhile.
 */
export function breakHold(lock: Lock, holder: ShownHolder): void {
  const input = h("input", {
    type: "text",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Name of the lock",
  });
  const sure = h("button", { type: "submit", class: "danger", disabled: true }, "Force-release");
  input.addEventListener("input", () => {
    sure.disabled = input.value !== visible(lock.name) && input.value !== lock.name;
  });
  const dialog = h(
    "dialog",
    { "aria-labelledby": "asked", close: () => dialog.remove() },
    h(
      "form",
      {
        method: "dialog",
        submit: (event) => {
          event.preventDefault();
          if (sure.disabled) return;
          dialog.close();
          void act("break", lock, holder).then(tell);
        },
      },
      h("h2", { id: "asked" }, `Force-release ${visible(lock.name)}?`),
      h(
        "p",
        {},
        `The lock is taken away from ${nameOf(holder)}, which works on until it notices, beside the next holder. Only a resource that checks fencing tokens keeps the two apart. Type the name of the lock to confirm:`,
      ),
      h("p", { class: "mono typed" }, visible(lock.name)),
      input,
      h(
        "p",
        { class: "actions" },
        h("button", { type: "button", click: () => dialog.close() }, "Cancel"),
        sure,
      ),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  input.focus();
}

let timer = 0;

/** For a while, at the foot of the page. */
export function tell({ done, said }: Done): void {
  let toast = document.getElementById("toast");
  if (!toast) {
    toast = h("p", { id: "toast", role: "status" });
    document.body.append(toast);
  }
  toast.className = done ? "done" : "failed";
  say(toast, harmless(said));
  toast.hidden = false;
  const shown = toast;
  clearTimeout(timer);
  timer = setTimeout(() => {
    shown.hidden = true;
  }, 8_000);
}
