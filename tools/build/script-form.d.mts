import type { Form } from "../../src/redis/script.ts";

export function formOf(path: string, source: string): Form | string | null;
