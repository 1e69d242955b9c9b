import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { KubeClient, ObjectKey } from '#kube'
import { silentLogger } from '#runtime'
import { joinsOnKubernetes } from './joins.ts'
import type { HubLogger } from './run.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => vi.useRealTimers())

it('takes an authority of members for ended where another list says so, and not where there is none', async () => {
  const published = new Map<string, string>([['extension-apiserver-authentication', 'API\n']])
  const get = async (_: unknown, { name }: ObjectKey) => {
    const text = published.get(name)
    return text === undefined ? undefined : { metadata: { name }, data: { 'ca.crt': text, 'client-ca-file': text } }
  }
  const hub = () => ({ get }) as unknown as KubeClient
  const told: string[] = []
  const warn = (_: object, text: string) => void told.push(text)
  const logger = { ...silentLogger, warn } as unknown as HubLogger // it only warns
  const { clientRoots } = joinsOnKubernetes({ hub, namespace: 'clusterpulse', record: async () => undefined, logger })
  const later = async () => {
    vi.setSystemTime(Date.now() + 31_000)
    return (await clientRoots()).split('\n').filter(Boolean)
  }
  expect(await later()).toEqual(['API'])
  published.set('hub-authority', 'ONE\nTWO\n')
  expect(await later()).toEqual(['ONE', 'TWO', 'API'])
  published.delete('hub-authority')
  expect(await later()).toEqual(['ONE', 'TWO', 'API'])
  published.set('hub-authority', '')
  expect(await later()).toEqual(['ONE', 'TWO', 'API'])
  expect(told).toEqual([expect.stringContaining('clusterpulse/hub-authority says no more which authorities')])
  published.set('hub-authority', 'TWO\n')
  expect(await later()).toEqual(['TWO', 'API'])
})
