import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TableRowView } from '../contract.ts'
import { foldEvents, isOfWorkload, kubeEvent } from './kube-events.ts'

const row = (name: string, values: Record<string, string | number | null>): TableRowView => ({
  ...{ id: `shop/${name}`, namespace: 'shop', name, labels: {} },
  values: { type: 'Warning', reason: 'BackOff', object: 'Pod/web-1', message: 'Back-off', count: 1, ...values },
})
const eventOf = (name: string, values: Record<string, string | number | null> = {}, cluster = 'west') =>
  kubeEvent(cluster, row(name, { lastAt: 1, firstAt: 1, ...values }))

describe('a line of the timeline', () => {
  it('is what happened to things of one kind for one reason, told by the newest', () => {
    const lines = foldEvents([
      eventOf('a', { lastAt: 1, firstAt: 1, count: 2, message: 'older' }),
      eventOf('b', { lastAt: 3, firstAt: 2, count: 5, object: 'Pod/web-2', message: 'newest' }),
      eventOf('c', { reason: 'Killing', type: 'Normal', lastAt: 2 }),
      eventOf('d', { lastAt: 0 }, 'east'),
    ])
    expect(
      [...lines.values()].map(({ cluster, reason, about, count, text, firstAt, members }) => [
        ...[cluster, reason, about, count, text, firstAt, members.length],
      ]),
    ).toEqual([
      ['west', 'BackOff', '2 Pods', 7, 'newest', 1, 2],
      ['west', 'Killing', 'Pod/web-1', 1, 'Back-off', 1, 1],
      ['east', 'BackOff', 'Pod/web-1', 1, 'Back-off', 1, 1],
    ])
  })

  it('holds each event once, in whatever order they come', () => {
    const one = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      reason: fc.constantFrom('BackOff', 'Killing'),
      lastAt: fc.nat(5),
    })
    fc.assert(
      fc.property(fc.uniqueArray(one, { selector: ({ name }) => name }), (given) => {
        const events = given.map(({ name, ...values }) => eventOf(name, values))
        const lines = foldEvents([...events, ...events.toReversed()])
        expect([...foldEvents(events.toReversed())]).toEqual([...lines])
        expect([...lines.values()].flatMap(({ members }) => members.map(({ key }) => key)).sort()).toEqual(
          events.map(({ key }) => key).sort(),
        )
      }),
    )
  })

  it('has no words where the hub gives none, and no time where none is known', () =>
    expect(eventOf('a', { message: null, lastAt: null })).toMatchObject({ text: null, at: null }))
})

describe('what is of a workload', () => {
  it.each([
    ['Deployment/web', ['Deployment/web', 'ReplicaSet/web-6f9c8d7b5', 'Pod/web-6f9c8d7b5-x2x4z']],
    ['StatefulSet/db', ['StatefulSet/db', 'Pod/db-0', 'Pod/db-12']],
    ['DaemonSet/log', ['DaemonSet/log', 'Pod/log-x2x4z']],
    ['CronJob/nightly', ['CronJob/nightly', 'Job/nightly-2911', 'Pod/nightly-2911-x2x4z']],
    ['Deployment/a.b', ['Deployment/a.b']],
  ])('%s', (reference, objects) => {
    for (const object of objects) expect(isOfWorkload(reference, object)).toBe(true)
    for (const object of [
      'Deployment/web-admin',
      'Pod/web-admin-6f9c8d7b5-x2x4z',
      'Pod/db-admin-0',
      'ReplicaSet/axb-1',
      'Node/web',
    ])
      expect(isOfWorkload(reference, object)).toBe(false)
  })
})
