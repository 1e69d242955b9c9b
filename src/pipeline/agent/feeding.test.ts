import { describe, expect, it } from 'vitest'
import { type Batch, parseClusterName, type RowsRead, Table } from '#model'
import { resourceOf } from '#resources'
import { silentLogger } from '#runtime'
import { Feeding } from './feeding.ts'
import { VirtualTime } from './testing/virtual-time.ts'

const kind = resourceOf('inventory')
const fields = ['kind']
const rowsOf = (...names: string[]): RowsRead => ({
  outcome: 'complete',
  rows: Table.of(
    fields,
    names.map((name) => ({ namespace: 'shop', name, labels: {}, values: { kind: 'Deployment' } })),
  ),
  ...{ truncated: false, errors: [], errorCount: 0 },
})

function started() {
  if (!kind) throw new Error('inventory is compiled in')
  const time = new VirtualTime(0)
  const told: Batch[] = []
  const world = { read: rowsOf('a'), isWanted: true, answer: (): Promise<void> => Promise.resolve() }
  let changed: () => void = () => undefined
  const stop = new AbortController()
  const feeding = new Feeding({
    cluster: parseClusterName('west'),
    feed: {
      source: 'inventory',
      read: () => world.read,
      onChange(listener) {
        changed = listener
        return () => {
          changed = () => undefined
        }
      },
    },
    kind,
    isWanted: () => world.isWanted,
    hand(step) {
      told.push(step)
      return world.answer()
    },
    clock: time,
    logger: silentLogger,
  })
  const ended = feeding.run(stop.signal)
  const pass = (ms: number) => time.advance(ms, () => new Promise((resolve) => setImmediate(resolve)))
  const stopped = () => {
    stop.abort()
    return ended
  }
  return { told, world, feeding, pass, change: () => changed(), stop: stopped }
}
const countsOf = (told: readonly Batch[]) =>
  told.map(({ tables: [part] = [] }) => (part?.outcome === 'complete' ? part.rows.size : part?.outcome))

describe('rows of this process, told to a hub', () => {
  it('are told at once, when they change, and once in an interval that they are as they were', async () => {
    const { told, world, pass, change, stop } = started()
    await pass(1)
    expect(countsOf(told)).toEqual([1])
    expect(told[0]).toMatchObject({
      partial: true,
      tables: [{ source: 'inventory', aggregations: { byKind: { Deployment: 1 } } }],
    })
    world.read = rowsOf('a', 'b')
    change()
    await pass(500)
    expect(countsOf(told)).toEqual([1, 2])
    await pass(61_000)
    expect(countsOf(told)).toEqual([1, 2, 2])
    await stop()
  })

  it('are told to nobody who did not ask, and all of them when somebody does', async () => {
    const { told, world, feeding, pass, change, stop } = started()
    world.isWanted = false
    await pass(1)
    told.length = 0
    world.read = rowsOf('a', 'b', 'c')
    change()
    await pass(200_000)
    expect(told).toEqual([])
    world.isWanted = true
    feeding.wake()
    await pass(500)
    expect(countsOf(told)).toEqual([3])
    await stop()
  })

  it('wait for a slow hub one step at a time, and go on with the latest', async () => {
    const { told, world, pass, change, stop } = started()
    let answer: () => void = () => undefined
    world.answer = () => new Promise((resolve) => (answer = resolve))
    await pass(1)
    for (let i = 2; i < 50; i++) {
      world.read = rowsOf(...Array.from({ length: i }, (_, at) => `row-${at}`))
      change()
      await pass(1000)
    }
    expect(countsOf(told)).toEqual([1, 2])
    answer()
    await pass(500)
    expect(countsOf(told)).toEqual([1, 2, 49])
    // One that never answers keeps nobody from stopping.
    await stop()
  })

  it('say why there are none', async () => {
    const { told, world, pass, change, stop } = started()
    await pass(1)
    world.read = { outcome: 'absent', code: 'not_served', message: 'the cluster does not have the kinds' }
    change()
    await pass(500)
    expect(countsOf(told)).toEqual([1, 'absent'])
    await stop()
  })
})
