import { describe, expect, it, vi } from 'vitest'
import { usualOrders } from '../testing/usual-orders.ts'
import type { Client } from './contract.ts'
import { askEarly } from './early.ts'
import { usualOrder } from './model/row-values.ts'
import { kindTabs, parseRoute } from './router.tsx'

// The router reads the place of the page when it is loaded.
vi.hoisted(() => {
  const location = { pathname: '/', search: '', hash: '' }
  vi.stubGlobal('window', { location, history: { state: null }, addEventListener: () => undefined })
})

/** Says what it was asked, as its answer. */
function aClient() {
  const asked: string[] = []
  const say = (...question: readonly unknown[]) => {
    asked.push(JSON.stringify(question.filter((one) => !(one instanceof AbortSignal))))
    return Promise.resolve(asked.length)
  }
  const client = {
    types: (...of: unknown[]) => say('types', ...of),
    type: (...of: unknown[]) => say('type', ...of),
    customRows: (...of: unknown[]) => say('rows', ...of),
  }
  return { asked, client: client as unknown as Client }
}

const opened = (path: string, query = '') => {
  const { asked, client } = aClient()
  return { asked, early: askEarly(client, parseRoute(path), new URLSearchParams(query)) }
}

describe('askEarly', () => {
  it.each([
    [
      '/clusters/west/nodes',
      '',
      [
        ['types', { cluster: 'west' }],
        ['rows', 'west', 'nodes', { limit: 200, sort: 'status' }],
      ],
    ],
    [
      '/clusters/west/nodes',
      'sort=name',
      [
        ['types', { cluster: 'west' }],
        ['rows', 'west', 'nodes', { limit: 200 }],
      ],
    ],
    [
      '/clusters/west/types/pods',
      'sort=-restarts',
      [
        ['types', { cluster: 'west' }],
        ['rows', 'west', 'pods', { limit: 200, sort: 'restarts', order: 'desc' }],
      ],
    ],
    ['/clusters/west/types/pods', '', [['types', { cluster: 'west' }]]],
    ['/clusters/west/nodes', 'q=cpu>9', [['types', { cluster: 'west' }]]],
    ['/types/pods', '', [['type', 'pods']]],
    ['/clusters/west', '', []],
    ['/clusters/west/history', '', []],
    ['/', '', []],
  ])('of %s?%s asks for %j before the page does', (path, query, questions) =>
    expect(opened(path, query).asked.map((one) => JSON.parse(one))).toEqual(questions),
  )

  it('answers the same question once, and asks any other', async () => {
    const { asked, early } = opened('/clusters/west/nodes', 'sort=name')
    const { signal } = new AbortController()
    expect(await early.customRows('west', 'nodes', { limit: 200 }, signal)).toBe(2)
    expect(await early.types({ cluster: 'west' }, signal)).toBe(1)
    expect(asked).toHaveLength(2)
    expect(await early.types({ cluster: 'west' }, signal)).toBe(3)
    expect(await early.customRows('west', 'nodes', { limit: 200, sort: 'cpu' }, signal)).toBe(4)
  })

  it('keeps no answer of before what may be seen became another, and no refusal', async () => {
    const { asked, client } = aClient()
    const later = askEarly(client, parseRoute('/types/pods'), new URLSearchParams(), () => false)
    expect(await later.type('pods')).toBe(2)
    const refusing = { ...client, type: () => Promise.reject(new Error('nobody is signed in')) }
    const early = askEarly(refusing, parseRoute('/types/pods'), new URLSearchParams())
    await Promise.resolve()
    refusing.type = client.type as never
    expect(await early.type('pods')).toBe(3)
    expect(asked).toHaveLength(3)
  })

  it('keeps no answer that the page wants only when it was there for a while', async () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(0)
    const { asked, early } = opened('/types/pods')
    now.mockReturnValue(10_001)
    expect(await early.type('pods')).toBe(2)
    expect(asked).toHaveLength(2)
    now.mockRestore()
  })

  it('knows the usual order of every kind that has a tab of its own', () => {
    expect(usualOrder).toEqual(usualOrders)
    expect(Object.keys(usualOrder)).toEqual(kindTabs)
  })
})
