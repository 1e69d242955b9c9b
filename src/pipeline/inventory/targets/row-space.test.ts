import fc from 'fast-check'
import { expect, it } from 'vitest'
import { RowStore } from '../store/index.ts'
import { FAILURE_BYTES } from './failures.ts'
import { KindRows } from './kind-rows.ts'
import { bytesOfRow, RowSpace, RowSpaces } from './row-space.ts'

const key = { namespace: 'shop', name: 't' }
const rowOf = (uid: number, text: string) => ({
  ...{ targetNamespace: 'shop', targetName: 't', namespace: 'shop', name: `n${uid}`, version: 'v1', kind: 'Pod' },
  ...{ uid: `u${uid}`, attributes: { text } },
})

it('is never more than it may be, and none when all is gone, whatever comes and goes', async () => {
  const one = fc.record({ uid: fc.nat(8), letters: fc.nat(3000) })
  const step = fc.oneof(
    fc.record({ take: one }),
    fc.record({ fail: fc.nat(8) }),
    fc.record({ gone: fc.nat(8) }),
    fc.record({ all: fc.array(one, { maxLength: 6 }) }),
  )
  const taken = ({ uid, letters }: { uid: number; letters: number }) => {
    const row = rowOf(uid, 'x'.repeat(letters))
    return [
      { uid: row.uid, namespace: 'shop', name: row.name },
      { row, bytes: bytesOfRow(row) },
    ] as const
  }
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const space = new RowSpace(10_000)
      const store = new RowStore(() => undefined)
      const rows = new KindRows(key, store.target(key), space)
      for (const one of steps) {
        if ('take' in one) rows.take(taken(one.take))
        else if ('fail' in one)
          rows.take([{ uid: `u${one.fail}`, namespace: 'shop', name: `n${one.fail}` }, { failure: 'x' }])
        else if ('gone' in one) rows.gone(`u${one.gone}`)
        else {
          const last = new Map(one.all.map((object) => [object.uid, object]))
          await rows.replace('shop', [...last.values()].map(taken), async () => undefined)
        }
        const state = store.state(key)
        const kept = state.kind === 'rows' ? state.rows : []
        const sum = kept.reduce((bytes, { attributes, uid }) => {
          const { text } = JSON.parse(attributes) as { text: string }
          return bytes + bytesOfRow(rowOf(Number(uid.slice(1)), text))
        }, 0)
        const ofFailures = space.keptBytes - sum
        expect([ofFailures % FAILURE_BYTES, space.keptBytes <= 10_000]).toEqual([0, true])
        expect(ofFailures / FAILURE_BYTES).toBeLessThanOrEqual(rows.failures)
        expect(rows.lastFailure === undefined).toBe(rows.failures === 0)
      }
      rows.release()
      expect(space.keptBytes).toBe(0)
    }),
  )
})

it('has no complete rows without that of an object that is there, not for a moment, whatever fails or has no room', async () => {
  const one = fc.record({ uid: fc.nat(5), letters: fc.nat(3000), fails: fc.boolean() })
  const step = fc.oneof(fc.record({ take: one }), fc.record({ gone: fc.nat(5) }), fc.record({ all: fc.array(one) }))
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const present = new Set<string>()
      const kept = () => {
        const state = store.state(key)
        return state.kind === 'rows' ? state : { rows: [], isComplete: false }
      }
      let had: readonly string[] = []
      const lost: string[] = []
      const store: RowStore = new RowStore(() => {
        const { rows, isComplete } = kept()
        const uids = new Set(rows.map(({ uid }) => uid))
        if (isComplete) lost.push(...had.filter((uid) => present.has(uid) && !uids.has(uid)))
      })
      const target = store.target(key)
      const rows = new KindRows(key, target, new RowSpace(5000))
      const taken = ({ uid, letters, fails }: { uid: number; letters: number; fails: boolean }) => {
        const row = rowOf(uid, 'x'.repeat(letters))
        const outcome = fails ? { failure: 'it fails' } : { row, bytes: bytesOfRow(row) }
        return [{ uid: row.uid, namespace: 'shop', name: row.name }, outcome] as const
      }
      for (const one of steps) {
        if ('take' in one) {
          present.add(`u${one.take.uid}`)
          rows.take(taken(one.take))
        } else if ('gone' in one) {
          present.delete(`u${one.gone}`)
          rows.gone(`u${one.gone}`)
        } else {
          const last = new Map(one.all.map((object) => [object.uid, object]))
          present.clear()
          for (const uid of last.keys()) present.add(`u${uid}`)
          await rows.replace('shop', [...last.values()].map(taken), async () => undefined)
        }
        // As its engine does soon afterwards.
        target.setComplete(rows.failures === 0)
        had = kept().rows.map(({ uid }) => uid)
      }
      expect(lost).toEqual([])
    }),
  )
})

it('is taken by objects without a row, too; of those that it has no room for there is but the number, and why', async () => {
  const space = new RowSpace(10_000)
  const [one, other] = ['t', 'other'].map(
    (name) => new KindRows({ ...key, name }, new RowStore(() => undefined).target(key), space),
  ) as [KindRows, KindRows]
  const failing = (uid: number) =>
    [{ uid: `u${uid}`, namespace: 'shop', name: `n${uid}` }, { failure: `shop/n${uid}: it fails` }] as const
  const all = Array.from({ length: 1000 }, (_, uid) => failing(uid))
  for (const rows of [one, other]) await rows.replace('shop', all, async () => undefined)
  expect([space.keptBytes, one.failures, other.failures]).toEqual([10_000, 1000, 1000])
  expect(other.lastFailure).toBe('shop/n999: it fails')
  one.take([failing(3)[0], undefined])
  one.take(failing(998))
  one.take(failing(999))
  expect([space.keptBytes, one.failures]).toEqual([10_000, 1000])
  await other.replace('shop', all.slice(0, 2), async () => undefined, 5)
  expect([other.failures, other.lastFailure]).toEqual([7, 'shop/n1: it fails'])
  await one.replace('shop', [], async () => undefined)
  expect([space.keptBytes, one.failures, one.lastFailure]).toEqual([0, 0, undefined])
  other.limitTo(() => false)
  expect([space.keptBytes, other.failures]).toEqual([0, 0])
})

it('is of one namespace, and has no bound for targets of the cluster', () => {
  const spaces = new RowSpaces(1000)
  expect([spaces.of('a').keep(900), spaces.of('a').keep(200), spaces.of('b').keep(900)]).toEqual([true, false, true])
  expect(spaces.of('').keep(1e12)).toBe(true)
  expect([spaces.of('a').arrive(900), spaces.of('a').arrive(200)]).toEqual([true, false])
})
