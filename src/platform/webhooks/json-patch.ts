import { isDeepStrictEqual } from 'node:util'

/** One step of RFC 6902. */
export type PatchStep =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const pointer = (path: string, name: string): string => `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`

/** What turns one value into the other. Lists are replaced as a whole. */
export function jsonPatch(before: unknown, after: unknown, path = ''): PatchStep[] {
  if (isDeepStrictEqual(before, after)) return []
  if (!isObject(before) || !isObject(after)) return [{ op: 'replace', path, value: after }]
  const gone = Object.keys(before).filter((name) => !Object.hasOwn(after, name))
  return [
    ...gone.map((name): PatchStep => ({ op: 'remove', path: pointer(path, name) })),
    ...Object.keys(after).flatMap((name): PatchStep[] =>
      Object.hasOwn(before, name)
        ? jsonPatch(before[name], after[name], pointer(path, name))
        : [{ op: 'add', path: pointer(path, name), value: after[name] }],
    ),
  ]
}
