import { describe, expect, it } from 'vitest'
import { ManualClock } from '../controller/testing/manual-clock.ts'
import { aServer, listening } from './test/server.ts'

const MINUTE_MS = 60_000
const NOW = Date.UTC(2026, 0, 10)
const events = { group: '', version: 'v1', plural: 'events' }
const limits = { lifeMs: 60 * MINUTE_MS, perNamespace: 3, maxBytes: 4_096 }
const anEvent = (name: string, message = 'seen', namespace = 'default') => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name, namespace },
  involvedObject: { namespace },
  message,
  // What its writer says of times is its own business.
  lastTimestamp: '2999-01-01T00:00:00Z',
})

describe('events of a server that bounds them', () => {
  it('go an hour after their last change', async () => {
    const clock = new ManualClock(NOW)
    const server = await aServer({ clock, events: limits })
    const names = () => server.objects.list(events).map(({ metadata }) => metadata.name)
    await server.objects.create(anEvent('quiet'), { fieldManager: 'a' })
    const busy = await server.objects.create(anEvent('busy'), { fieldManager: 'a' })
    await clock.advance(40 * MINUTE_MS)
    await server.objects.update({ ...busy, message: 'seen again' }, { fieldManager: 'a' })
    await clock.advance(22 * MINUTE_MS)
    expect(names()).toEqual(['busy'])
    await clock.advance(40 * MINUTE_MS)
    expect(names()).toEqual([])
  })

  it('are so many in a namespace and so large, whichever API and verb writes them; others go on', async () => {
    const server = await aServer({ events: limits })
    await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } })
    const { client } = await listening(server)
    const path = (namespace: string) => `/api/v1/namespaces/${namespace}/events`
    const create = async (name: string, message?: string, namespace = 'default') =>
      (await client.ask('POST', path(namespace), { body: anEvent(name, message, namespace) })).code
    expect(await create('large', 'x'.repeat(4_096))).toBe(413)
    for (const name of ['a', 'b', 'c']) expect(await create(name)).toBe(201)
    const refused = await client.ask('POST', path('default'), { body: anEvent('d') })
    expect(refused).toMatchObject({ code: 429, body: { reason: 'TooManyRequests' } })
    expect(refused.body.message).toContain('has 3 events, and may have 3: they go 60 minutes after their last change')
    const note = { apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name: 'd', namespace: 'default' } }
    const more = { eventTime: '2026-01-10T00:00:00.000000Z', reportingController: 'a/b', reportingInstance: 'c' }
    const newer = {
      ...note,
      ...more,
      action: 'Seen',
      reason: 'Seen',
      type: 'Normal',
      regarding: { namespace: 'default' },
    }
    const byNewer = await client.ask('POST', '/apis/events.k8s.io/v1/namespaces/default/events', { body: newer })
    expect(byNewer.code).toBe(429)
    expect(await create('a', undefined, 'other')).toBe(201)
    const patch = (message: string) =>
      client.ask('PATCH', `${path('default')}/a`, { body: { message }, type: 'application/merge-patch+json' })
    expect((await patch('x'.repeat(4_096))).code).toBe(413)
    expect((await patch('again')).code).toBe(200)
  })
})
