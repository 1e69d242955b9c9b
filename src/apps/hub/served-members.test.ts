import { expect, it } from 'vitest'
import { CERTIFICATE_LIFE_ANNOTATION } from '#kinds'
import { silentLogger } from '#runtime'
import { aMember, anEmbeddedApi, change } from '../../control/registration/testing/hub.ts'
import { servedMembers } from './served-members.ts'

it('the log says at the start which members were locked out with the CA that signed them, and what helps', async () => {
  await using api = await anEmbeddedApi()
  for (const name of ['east', 'west', 'north']) await aMember(api, name, { transport: 'stream' })
  const life = (issuer: string) => `2026-01-01T00:00:00.000Z/2036-01-01T00:00:00.000Z/${issuer.repeat(16)}`
  for (const [name, issuer] of [
    ['east', 'a'],
    ['west', 'b'],
  ] as const)
    await change(api, name, { metadata: { annotations: { [CERTIFICATE_LIFE_ANNOTATION]: life(issuer) } } })
  const errors: unknown[][] = []
  const logger = { ...silentLogger, child: () => silentLogger, error: (...said: unknown[]) => void errors.push(said) }
  const authorities = {
    lacksIssuerOf: ({ issuer }: { readonly issuer?: string }) => issuer === 'a'.repeat(16),
    onChange: () => () => undefined,
  }
  const { parts } = servedMembers({
    ...{ hub: () => api.kube, namespace: 'clusterpulse', authorities, administratorsDecide: true },
    logger: logger as never,
  })
  const stop = new AbortController()
  for (const part of parts) await part.start(stop.signal)
  await expect.poll(() => errors).toHaveLength(1)
  expect(errors[0]).toEqual([
    { members: 1, names: ['east'] },
    expect.stringMatching(/no longer has.*clusterpulse connect NAME.*backup\.md/),
  ])
  stop.abort()
  for (const part of parts) await part.stop()
})
