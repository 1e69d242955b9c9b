import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { createClient } from '#http'
import { allow } from './test/policies.ts'
import { aNode, aWorld, complete, proxy, type World } from './test/world.ts'

async function aFleet(): Promise<World> {
  const world = await aWorld({ identity: proxy, policies: [allow('ann', { clusters: ['west'] })] })
  await world.connect('west')
  await world.connect('east')
  await world.batch('west', [complete('node', [aNode('a')])])
  return world
}

describe('the typed client', () => {
  it('asks who one is, what one may see, and why', async () => {
    await using world = await aFleet()
    const client = createClient({ baseUrl: await world.server.start(), headers: { 'x-forwarded-user': 'ann' } })
    expect((await client.session()).user).toMatchObject({ username: 'ann', administrator: false })
    expect((await client.permissions()).accessible_cluster_names).toEqual(['west'])
    expect((await client.ownPolicies()).evaluation_order).toEqual(['ann'])
    const explanation = await client.explain({ cluster: 'west', type: 'nodes', name: 'a' })
    expect(explanation).toMatchObject({ result: 'allow', item: { shown: true }, decidedBy: { policy: 'test/ann' } })
    await expect(client.explain({ cluster: 'west', as: 'bob', groups: ['x', 'y'] })).rejects.toMatchObject({
      code: 'administrators_only',
    })
    expect(await client.clearCache()).toMatchObject({ user: 'ann', rbac_entries_cleared: 0 })
    expect(await client.logout()).toEqual({ message: 'Logout successful' })
    await expect(client.signIn('root', 'x')).rejects.toMatchObject({ status: 404, code: 'sign_in_off' })
    expect(client.signInUrl('/clusters/west?a=b')).toMatch(/\/auth\/login\?returnTo=%2Fclusters%2Fwest%3Fa%3Db$/)
  })

  it('serves administrators', async () => {
    await using world = await aFleet()
    const client = createClient({ baseUrl: await world.server.start(), headers: { 'x-forwarded-user': 'admin' } })
    expect((await client.policies()).items.map(({ key }) => key)).toEqual(['test/ann'])
    const { items } = await client.accessOf({ username: 'ann', groups: ['dev'] })
    expect(items.map(({ cluster, level }) => [cluster, level])).toEqual([
      ['east', 'none'],
      ['west', 'full'],
    ])
    const policy = {
      apiVersion: 'clusterpulse.io/v1alpha1',
      kind: 'MonitorAccessPolicy',
      metadata: { name: 'all', namespace: 'test' },
      spec: {
        identity: { subjects: { groups: ['dev'] } },
        access: { effect: 'Allow' },
        scope: { clusters: { rules: [{ selector: { matchPattern: '.*' } }] } },
      },
    }
    const { changes } = await client.previewPolicies({ manifest: stringify(policy), remove: ['test/ann'] })
    expect(changes.map(({ subject, cluster, after }) => [subject.groups, cluster, after])).toEqual([
      [[], 'west', 'none'],
      [['dev'], 'east', 'limited'],
      [['dev'], 'west', 'limited'],
    ])
    expect((await client.explain({ cluster: 'east', as: 'ann' })).result).toBe('deny')
    expect(await client.viewAs({ username: 'ann' })).toMatchObject({ message: expect.stringContaining('ann') })
    expect(await client.endViewAs()).toMatchObject({ message: expect.any(String) })
  })
})
