import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ApiServer, listenApi } from '#apiserver'
import { createKubeClient, type KubeClient } from '#kube'
import { aRequest, signingRequest } from '../../platform/authority/test/requests.ts'
import { approve, denialIn, deny, denyApproved } from './decision.ts'
import { certificateRequests } from './signing.ts'

let kube: KubeClient
const close: AsyncDisposable[] = []
beforeAll(async () => {
  const server = await ApiServer.open({ storage: { kind: 'memory' } })
  const grant = { token: 'word', user: 'admin', groups: ['system:masters'] }
  const listener = await listenApi({ tokens: [grant], mounts: new Map([['', server]]) })
  const credentials = { kind: 'token' as const, token: grant.token }
  const client = createKubeClient({ server: listener.url, ca: listener.caPem, verifyTls: true, credentials })
  kube = client
  close.push(client, listener, server)
})
afterAll(async () => {
  for (const one of close) await one[Symbol.asyncDispose]()
})

const decision = { reason: 'Test', message: 'decided by a test' }
async function asked(name: string) {
  const { metadata, spec } = signingRequest((await aRequest()).pem)
  const { username: _, groups: __, ...given } = spec ?? {}
  return kube.create(certificateRequests, { metadata: { name, labels: { ...metadata.labels } }, spec: given })
}
const types = async (name: string) =>
  ((await kube.get(certificateRequests, { name }))?.status?.conditions ?? []).map(({ type }) => type)

describe('a decision about a request', () => {
  it('is written also where somebody wrote the request meanwhile', async () => {
    const known = await asked('moved')
    await kube.patch(
      certificateRequests,
      { name: 'moved' },
      { metadata: { annotations: { note: 'x' } } },
      { kind: 'merge' },
    )
    await approve(kube, known, decision)
    expect(await types('moved')).toEqual(['Approved'])
    expect((await kube.get(certificateRequests, { name: 'moved' }))?.metadata.annotations).toEqual({ note: 'x' })
  })

  it('is not changed by another one, known or not', async () => {
    const known = await asked('denied')
    await deny(kube, known, decision)
    await approve(kube, known, decision)
    await approve(kube, { metadata: { name: 'denied' } }, decision)
    expect(await types('denied')).toEqual(['Denied'])
  })

  it('against one that is approved stands beside the approval, and is told from a signer that failed', async () => {
    const known = await asked('late')
    expect(denialIn(known)).toBeUndefined()
    await approve(kube, known, decision)
    await denyApproved(kube, known, { message: 'after all not' })
    await denyApproved(kube, known, { message: 'again' })
    const found = await kube.get(certificateRequests, { name: 'late' })
    expect(found?.status?.conditions).toMatchObject([
      { type: 'Approved' },
      { type: 'Failed', message: 'after all not' },
    ])
    expect(denialIn(found!)?.message).toBe('after all not')
    expect(
      denialIn({ status: { conditions: [{ type: 'Failed', status: 'True', reason: 'SignerValidationFailure' }] } }),
    ).toBe(undefined)
    const refused = await asked('early')
    await deny(kube, refused, decision)
    await denyApproved(kube, refused, { message: 'no' })
    expect(await types('early')).toEqual(['Denied'])
  })

  it('is about that request, and none that took its name', async () => {
    const known = await asked('twice')
    await kube.delete(certificateRequests, { name: 'twice' })
    await approve(kube, known, decision)
    await asked('twice')
    await approve(kube, known, decision)
    expect(await types('twice')).toEqual([])
  })
})
