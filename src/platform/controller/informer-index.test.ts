import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '#kube'
import type { ObjectChange } from './informer.ts'
import { InformerIndex } from './informer-index.ts'

describe('an index of what an informer holds', () => {
  it('finds what looking through all of it would find, whatever came, moved and went', () => {
    const change = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      groups: fc.uniqueArray(fc.constantFrom('x', 'y', 'z')),
      isDeleted: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(change), (changes) => {
        let tell: (change: ObjectChange<KubeObject>) => void = () => undefined
        const groupsOf = ({ groups }: KubeObject) => groups as string[]
        const index = new InformerIndex<KubeObject>(
          {
            onChange(listener) {
              tell = listener
              return () => undefined
            },
          },
          groupsOf,
        )
        const held = new Map<string, KubeObject>()
        for (const { name, groups, isDeleted } of changes) {
          const previous = held.get(name)
          const object: KubeObject = { metadata: { name }, groups }
          const key = { name }
          if (isDeleted) {
            if (!previous) continue
            held.delete(name)
            tell({ kind: 'deleted', key, previous })
          } else {
            held.set(name, object)
            tell(previous ? { kind: 'changed', key, object, previous } : { kind: 'added', key, object })
          }
          for (const group of ['x', 'y', 'z'])
            expect(new Set(index.of(group))).toEqual(
              new Set([...held.values()].filter((one) => groupsOf(one).includes(group))),
            )
        }
      }),
    )
  })
})
