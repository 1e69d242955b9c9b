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
