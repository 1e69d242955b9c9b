import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '#kube'
import { kubernetesEvents, MESSAGE_LENGTH, NEWEST } from './kubernetes-events.ts'
import { NewestRows } from './newest-rows.ts'

const AT = '2026-01-02T03:04:05Z'
const about = (kind: string, name: string, namespace = 'shop') => ({ involvedObject: { kind, name, namespace } })

function rowOf(event: object) {
  const builder = kubernetesEvents.collect(0, kubernetesEvents.target)
  builder.add({ metadata: { name: 'e', namespace: 'shop' }, ...event } as unknown as KubeObject)
  return builder.rows().row(0)
}
const valuesOf = (event: object) => rowOf(event).values

describe('events of a cluster', () => {
  it('say what happened to what, how often, and who saw it where', () =>
    expect(
      valuesOf({
        ...about('Pod', 'web-1'),
        ...{ type: 'Warning', reason: 'BackOff', message: 'Back-off restarting failed container', count: 7 },
        ...{ firstTimestamp: AT, lastTimestamp: '2026-01-02T04:04:05Z', source: { component: 'kubelet', host: 'n1' } },
      }),
    ).toEqual({
      ...{ type: 'Warning', reason: 'BackOff', object: 'Pod/web-1', message: 'Back-off restarting failed container' },
      ...{
        count: 7,
        firstAt: Date.parse(AT),
        lastAt: Date.parse('2026-01-02T04:04:05Z'),
        source: 'kubelet',
        node: 'n1',
      },
    }))

  it.each([
    [
      'a series, of a component of today',
      { eventTime: AT, series: { count: 3, lastObservedTime: '2026-01-02T03:05:05Z' } },
      3,
      60_000,
    ],
    ['one that was seen once', { eventTime: AT }, 1, 0],
    ['one that says neither', { metadata: { name: 'e', namespace: 'shop', creationTimestamp: AT } }, 1, 0],
  ])('count and date %s', (_, event, count, later) =>
    expect(valuesOf({ ...about('Pod', 'web-1'), ...event })).toMatchObject({ count, lastAt: Date.parse(AT) + later }),
  )

  it.each([
    ['its host', { ...about('Pod', 'a'), source: { component: 'kubelet', host: 'n1' } }, 'n1'],
    [
      'the kubelet that reports',
      { ...about('Pod', 'a'), reportingComponent: 'kubelet', reportingInstance: 'n2' },
      'n2',
    ],
    ['the node it is about', { ...about('Node', 'n3', ''), source: { component: 'node-controller' } }, 'n3'],
    [
      'the words of the scheduler',
      { ...about('Pod', 'a'), reason: 'Scheduled', message: 'Successfully assigned shop/a to n4' },
      'n4',
    ],
    ['nothing', { ...about('Pod', 'a'), reportingComponent: 'x', reportingInstance: 'x-1' }, null],
  ])('name a node by %s', (_, event, node) => expect(valuesOf(event).node).toBe(node))

  it('of what is in no namespace are in none, whatever namespace the API keeps them in', () => {
    const builder = kubernetesEvents.collect(0, kubernetesEvents.target)
    const event = { metadata: { name: 'n1.1', namespace: 'default' }, ...about('Node', 'n1', '') }
    builder.add(event as unknown as KubeObject)
    expect(builder.rows().namespaceAt(0)).toBe('')
    builder.remove('default', 'n1.1')
    expect(builder.rows().size).toBe(0)
  })

  it('have messages with a bound, and no half character at their end', () => {
    const long = valuesOf({ ...about('Pod', 'a'), message: `${'x'.repeat(MESSAGE_LENGTH - 2)}😀 and more` }).message
    expect(long).toBe(`${'x'.repeat(MESSAGE_LENGTH - 2)}…`)
  })

  it('are the newest of a cluster that has more, and it is said that there are', () => {
    const fold = kubernetesEvents.collector.open({ endpoint: '', now: 0, onMalformed: () => undefined })
    const [read] = kubernetesEvents.collector.reads
    for (let at = 0; at < 3 * NEWEST; at++) {
      const name = `e${at}`
      const after = {
        metadata: { name, namespace: 'shop' },
        ...about('Pod', 'a'),
        lastTimestamp: new Date(at * 1000).toISOString(),
      }
      fold.take(read!, { type: 'changed', before: undefined, after })
    }
    const parts = fold.parts(0)
    if (!('rows' in parts) || !parts.rows) throw new Error('there are no rows')
    const times = [...parts.rows.rows.rows()].map(({ values }) => values.lastAt)
    expect(Math.min(...times.map(Number))).toBe(2 * NEWEST * 1000)
    expect([parts.rows.rows.size, parts.rows.truncated]).toEqual([NEWEST, true])
  })

  it('are followed, where a member lets them be', () =>
    expect(kubernetesEvents.collector.reads.flatMap(({ verbs }) => verbs)).toContain('watch'))
})

describe('the newest rows', () => {
  const most = 5
  it('are those that a sort of everything would keep, whatever comes and goes and whenever they are asked for', () => {
    const step = fc.record({
      name: fc.integer({ min: 0, max: 30 }).map((n) => `e${n}`),
      at: fc.integer({ min: 0, max: 9 }),
      does: fc.constantFrom('add', 'add', 'add', 'ask'),
    })
    fc.assert(
      fc.property(fc.uniqueArray(step, { selector: ({ name }) => name, maxLength: 30 }), (steps) => {
        const rows = new NewestRows(['at'], { column: 'at', most })
        for (const { name, at, does } of steps)
          if (does === 'ask') rows.rows()
          else rows.add('n', name, {}, [at])
        const added = steps.filter(({ does }) => does === 'add')
        const newest = added
          .toSorted((one, other) => one.at - other.at || (one.name < other.name ? -1 : 1))
          .slice(-most)
          .map(({ name }) => name)
        expect([...rows.rows().rows()].map(({ name }) => name)).toEqual(newest.sort())
        expect(rows.leftOut).toBe(added.length - newest.length)
      }),
    )
  })

  it('are what is there, whatever is changed and removed', () => {
    const step = fc.record({
      name: fc.constantFrom('a', 'b', 'c'),
      at: fc.nat(9),
      does: fc.constantFrom('add', 'remove', 'ask'),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const rows = new NewestRows(['at'], { column: 'at', most })
        const there = new Map<string, number>()
        for (const { name, at, does } of steps) {
          if (does === 'ask') rows.rows()
          else if (does === 'remove') {
            rows.remove('n', name)
            there.delete(name)
          } else {
            rows.add('n', name, {}, [at])
            there.set(name, at)
          }
        }
        const all = [...rows.rows().rows()].map(({ name, values }) => [name, values.at])
        expect(all).toEqual([...there].sort(([one], [other]) => (one < other ? -1 : 1)))
        expect(rows.size).toBe(there.size)
      }),
    )
  })
})
