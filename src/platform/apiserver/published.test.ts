import { describe, expect, it } from 'vitest'
import { ApiServer } from './server.ts'
import { aDirectory, aServer } from './test/server.ts'

const KEY = { namespace: 'kube-system', name: 'extension-apiserver-authentication' }
const MAPS = { group: '', version: 'v1', plural: 'configmaps' }

describe('what every cluster publishes', () => {
  it('says whose client certificates are taken, and lets it be read by a role', async () => {
    const server = await aServer({ defaultRoles: true, clientCa: 'a CA' })
    expect(server.objects.get(MAPS, KEY)?.data).toEqual({ 'client-ca-file': 'a CA' })
    const roles = { group: 'rbac.authorization.k8s.io', version: 'v1', plural: 'roles' }
    const reader = { namespace: KEY.namespace, name: `${KEY.name}-reader` }
    expect(server.objects.get(roles, reader)).toMatchObject({ rules: [{ resourceNames: [KEY.name] }] })
  })

  it('follows CAs that come and go while it runs, beside those that stay', async () => {
    const server = await aServer({ defaultRoles: true, clientCa: 'later' })
    expect(server.objects.get(MAPS, KEY)).toBeUndefined()
    let changed: () => void = () => undefined
    const authorities = {
      pem: 'one\n',
      onChange(listener: () => void) {
        changed = listener
        return () => undefined
      },
    }
    await server.publishAuthorities(authorities, 'fixed')
    expect(server.objects.get(MAPS, KEY)?.data).toEqual({ 'client-ca-file': 'fixed\none\n' })
    authorities.pem = 'two\n'
    changed()
    await expect.poll(() => server.objects.get(MAPS, KEY)?.data).toEqual({ 'client-ca-file': 'fixed\ntwo\n' })
  })

  it('follows the CAs from one start to the next', async () => {
    const storage = { kind: 'journal', dir: aDirectory() } as const
    const first = await ApiServer.open({ storage, defaultRoles: true, clientCa: 'old' })
    await first[Symbol.asyncDispose]()
    const second = await aServer({ storage, defaultRoles: true, clientCa: 'new' })
    expect(second.objects.get(MAPS, KEY)?.data).toEqual({ 'client-ca-file': 'new' })
  })
})
