import { describe, expect, it } from 'vitest'
import { ApiServer } from './server.ts'
import { aDirectory, aServer } from './test/server.ts'
import type { ApiObject } from './types.ts'

const CRDS = { group: 'apiextensions.k8s.io', version: 'v1', plural: 'customresourcedefinitions' }

const definition = (plural: string, names: object = {}, group = 'shop.example.com'): ApiObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Cluster',
    names: { plural, kind: 'Order', singular: plural.slice(0, -1), ...names },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
})
const order = (name: string): ApiObject => ({
  apiVersion: 'shop.example.com/v1',
  kind: 'Order',
  metadata: { name },
})
const resource = (plural: string) => ({ group: 'shop.example.com', version: 'v1', plural })
const conditionsOf = (server: ApiServer, plural: string): object[] => {
  const found = server.objects.get(CRDS, { name: `${plural}.shop.example.com` })
  return (found?.status as { conditions?: object[] } | undefined)?.conditions ?? []
}
const refused = [
  {
    type: 'NamesAccepted',
    status: 'False',
    reason: 'ListKindConflict',
    message: '"OrderList" is already in use',
    lastTransitionTime: expect.any(String),
  },
  {
    type: 'Established',
    status: 'False',
    reason: 'NotAccepted',
    message: 'not all names are accepted',
    lastTransitionTime: expect.any(String),
  },
]

describe('the names of a definition', () => {
  it('are those of who had them first, and given on when that one goes', async () => {
    const server = await aServer()
    await server.objects.create(definition('orders'))
    await server.objects.create(definition('purchases'))
    expect(conditionsOf(server, 'purchases')).toEqual(refused)
    expect(server.served.get(resource('purchases'))).toBeUndefined()
    await server.objects.create(order('one'))
    expect(server.objects.get(resource('orders'), { name: 'one' })).toBeDefined()

    await server.objects.delete(CRDS, { name: 'orders.shop.example.com' })
    await expect.poll(() => server.served.get(resource('purchases'))?.kind).toBe('Order')
    expect(conditionsOf(server, 'purchases')).toMatchObject([{ status: 'True' }, { status: 'True' }])
    await server.objects.create(order('two'))
    expect(server.objects.get(resource('purchases'), { name: 'two' })).toBeDefined()
  })

  it('stay refused after a restart', async () => {
    const storage = { kind: 'journal', dir: aDirectory() } as const
    const first = await ApiServer.open({ storage })
    await first.objects.create(definition('purchases'))
    await first.objects.create(definition('orders'))
    await first[Symbol.asyncDispose]()
    const server = await aServer({ storage })
    expect(conditionsOf(server, 'orders')).toEqual(refused)
    expect(server.served.ofKind('shop.example.com/v1', 'Order')?.plural).toBe('purchases')
    expect(server.served.get(resource('orders'))).toBeUndefined()
  })

  it('are compared within their group: plurals with short names, kinds with kinds', async () => {
    const server = await aServer()
    await server.objects.create(definition('orders', { shortNames: ['o'] }))
    await server.objects.create(definition('others', { kind: 'Other', shortNames: ['o'] }))
    expect(conditionsOf(server, 'others')).toMatchObject([
      { reason: 'ShortNamesConflict', message: '"o" is already in use' },
      { status: 'False' },
    ])
    await server.objects.create(definition('orders', {}, 'other.example.com'))
    expect(server.served.ofKind('other.example.com/v1', 'Order')).toBeDefined()
  })
})
