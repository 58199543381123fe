import { existsSync } from "node:fs";
import { join, normalize } from "node:path/posix";
import { anchors, links, markdownFiles, readText } from "./markdown.ts";

/** Every relative link points to an existing file or folder, and to a heading in it. */
export function checkLinks(root: string): string[] {
  const known = new Map<string, Set<string>>();
  const anchorsOf = (path: string): Set<string> => {
    const found = known.get(path) ?? anchors(readText(root, path));
    known.set(path, found);
    return found;
  };
  return markdownFiles(root).flatMap((file) =>
    links(readText(root, file)).flatMap(({ target, line }) => {
      if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return [];
      const [path = "", anchor] = target.split("#", 2);
      const place = `${file}:${line}: the link ${target}`;
      const to = path === "" ? file : normalize(join(file, "..", decodeURIComponent(path)));
      if (to.startsWith("..")) return [`${place} leaves the project`];
      if (!existsSync(join(root, to))) return [`${place} points to nothing: there is no ${to}`];
      if (anchor === undefined) return [];
      if (!to.endsWith(".md")) return [`${place} has an anchor, but ${to} is no Markdown file`];
      return anchorsOf(to).has(anchor) ? [] : [`${place} points to no heading: ${to} has no #${anchor}`];
    }),
  );
}
