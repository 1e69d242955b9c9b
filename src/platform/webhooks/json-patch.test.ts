import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonPatch } from './json-patch.ts'

type Json = Record<string, unknown>

/** RFC 6902, as far as we write it. */
function applied(document: Json, patch: ReturnType<typeof jsonPatch>): unknown {
  const root = { '': structuredClone(document) } as Json
  for (const step of patch) {
    const names = step.path.split('/').map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
    const last = names.pop() ?? ''
    let holder = root
    for (const name of names) holder = holder[name] as Json
    if (step.op === 'remove') delete holder[last]
    // `__proto__` is a name as any other.
    else
      Object.defineProperty(holder, last, { value: step.value, enumerable: true, writable: true, configurable: true })
  }
  return root['']
}

describe('jsonPatch', () => {
  it('turns any object into any other', () =>
    fc.assert(
      fc.property(fc.object({ maxDepth: 3 }), fc.object({ maxDepth: 3 }), (one, other) => {
        const [before, after] = [one, other].map((value) => JSON.parse(JSON.stringify(value)) as Json)
        expect(applied(before ?? {}, jsonPatch(before, after))).toEqual(after)
      }),
    ))

  it('says nothing where nothing changes, and escapes names', () => {
    expect(jsonPatch({ a: [1] }, { a: [1] })).toEqual([])
    expect(jsonPatch({ labels: {} }, { labels: { 'a/b~c': 'd' } })).toEqual([
      { op: 'add', path: '/labels/a~1b~0c', value: 'd' },
    ])
  })
})
