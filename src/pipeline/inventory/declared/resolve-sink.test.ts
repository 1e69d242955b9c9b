import { expect, it } from 'vitest'
import type { KubeClient } from '#kube'
import { TestAuthority } from '../../ingest/stream/test/certificates.ts'
import { strict } from '../targets/testing/cluster.ts'
import { resolveSink } from './resolve-sink.ts'

it('takes of a CA what can be read, and says of one that is none', async () => {
  const { pem } = await TestAuthority.make('ours')
  const resolved = async (text: string) => {
    const data = { 'ca.crt': Buffer.from(text).toString('base64') }
    const kube = { get: async () => ({ metadata: { name: 'ca' }, data }) } as unknown as KubeClient
    const object = {
      metadata: { name: 'git', namespace: 'shop' },
      spec: { type: 'git', endpoint: 'https://git.example/shop.git', tls: { caSecretRef: { name: 'ca' } } },
    }
    const context = { kube, known: strict, cluster: 'west' }
    const { found } = await resolveSink('snapshot', object as never, context, new Map(), new AbortController().signal)
    return found.kind === 'ready' ? found.sink.object.declaration.caBundle : found.blocked
  }
  const broken = pem.replace(/[A-Za-z]{8}/, '????????')
  expect(await resolved(`our own CA\n${pem}\n${broken}\nand so on`)).toBe(pem)
  for (const none of ['hello', broken])
    expect(await resolved(none)).toMatchObject({ reason: 'SecretIncomplete', errorClass: 'terminal' })
})
