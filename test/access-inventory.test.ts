import { readFileSync } from 'node:fs'
import { Type } from 'typebox'
import { beforeAll, describe, expect, it } from 'vitest'
import type { RouteContract } from '#http'
import { accessInventory, inventoryFaults, type Reachable, reachable } from '../scripts/access-inventory.ts'

describe('whatever can be reached has a declared rule', () => {
  let found: Reachable
  beforeAll(async () => {
    found = await reachable()
  })

  it('for every route, call, listener and command of this build', () => {
    expect(inventoryFaults(found)).toEqual([])
    expect(found.registered.length).toBeGreaterThan(40)
    expect(found.rpcs).toEqual(['clusterpulse.collector.v1.CollectorService/Connect'])
  })

  it('and a route that is served without a contract fails the build', () => {
    const extra = { method: 'GET', url: '/api/v2/backdoor', access: 'public' } as const
    expect(inventoryFaults({ ...found, registered: [...found.registered, extra] })).toEqual([
      'route GET /api/v2/backdoor is served and in no contract',
    ])
  })

  it('and a route that is served to more people than declared', () => {
    const registered = found.registered.map((route) =>
      route.url === '/api/v2/access/policies' ? { ...route, access: 'authenticated' as const } : route,
    )
    expect(inventoryFaults({ ...found, registered })).toEqual([
      'route GET /api/v2/access/policies is served to authenticated and declared for administrator',
    ])
  })

  it('and a contract that nobody serves', () => {
    const missing: RouteContract = {
      method: 'GET',
      url: '/api/v2/later',
      access: 'filtered',
      schema: { operationId: 'later', summary: '', response: Type.Object({}) },
    }
    expect(inventoryFaults({ ...found, contracts: [...found.contracts, missing] })).toEqual([
      'route GET /api/v2/later is in a contract and not served',
    ])
  })

  it.each([
    ['rpcs', 'clusterpulse.collector.v1.CollectorService/Export', 'remote procedure call'],
    ['listeners', 'src/apps/hub/debug.ts', 'listener'],
    ['commands', 'export', 'command'],
  ] as const)('and one more among the %s', (where, name, what) => {
    expect(inventoryFaults({ ...found, [where]: [...found[where], name] })).toEqual([
      `${what} ${name} has no declared rule`,
    ])
    expect(inventoryFaults({ ...found, [where]: found[where].slice(1) })).toHaveLength(1)
  })

  it('and the page says the same', async () => {
    const { text } = await accessInventory()
    expect(readFileSync('docs/reference/access.md', 'utf8')).toBe(text)
  })
})
