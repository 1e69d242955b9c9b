import { describe, expect, it } from 'vitest'
import { errorOfConnection, timeoutText } from './errors.ts'

describe('errorOfConnection', () => {
  const endpoint = 'https://10.0.0.1:6443'
  const failed = (code: string) => errorOfConnection('GET /version', endpoint, Object.assign(new Error(code), { code }))

  it('says of a connection that did not come about what it says of an answer that did not', () => {
    const { reason, message } = failed('UND_ERR_CONNECT_TIMEOUT')
    expect({ reason, message }).toEqual({
      reason: 'timeout',
      message: `GET /version: ${timeoutText(endpoint, 10_000)}`,
    })
  })

  it('tells what the network gave up from it', () =>
    expect(failed('ETIMEDOUT').message).toContain('did not answer in time (ETIMEDOUT)'))
})

describe('a name that the DNS of a cluster alone knows', () => {
  const unresolved = (endpoint: string) =>
    errorOfConnection('GET /version', endpoint, Object.assign(new Error('no'), { code: 'ENOTFOUND' })).message

  it.each(['https://kubernetes.default.svc', 'https://kubernetes.default.svc.cluster.local:443', 'https://kubernetes'])(
    'is said to be one where it is asked for outside of pods: %s',
    (endpoint) =>
      expect(unresolved(endpoint)).toMatch(
        /known in the pods of its own cluster alone.*kubeconfig whose server is the/,
      ),
  )
  it.each(['https://api.example:6443', 'https://kubernetes.example', 'https://svc.example'])(
    'is not every other one: %s',
    (endpoint) => expect(unresolved(endpoint)).toMatch(/cannot be resolved \(ENOTFOUND\); check the address and DNS/),
  )
})
