import { describe, expect, it } from 'vitest'
import type { KollectEventSinkSpec } from '#kinds'
import { type EventDeclaration, SinkError } from '../sink.ts'
import { kafkaPlan } from './plan.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const user = { username: bytes('u'), password: bytes('pw-of-u\n') }
const plan = (
  brokers: readonly string[],
  spec: Partial<KollectEventSinkSpec> = {},
  more: Partial<EventDeclaration> = {},
  semantics: 'strict' | 'original' = 'strict',
) => {
  const kafka = { brokers: [...brokers], topic: 'inventory' }
  const declaration = { namespace: 'a', name: 'k', cluster: 'west', credentials: {}, ...more }
  return kafkaPlan({ ...declaration, spec: { type: 'kafka', kafka, ...spec } }, semantics)
}
const refusal = (...args: Parameters<typeof plan>): string => {
  try {
    plan(...args)
  } catch (error) {
    if (error instanceof SinkError && error.errorClass === 'terminal') return error.message
  }
  throw new Error('it was taken')
}

describe('brokers', () => {
  it('stand with and without port and scheme, in brackets, and several in one text', () =>
    expect(plan(['a.example:9093', 'b', 'plaintext://c:1, [::1]:2']).brokers).toEqual([
      { host: 'a.example', port: 9093 },
      { host: 'b', port: 9092 },
      { host: 'c', port: 1 },
      { host: '::1', port: 2 },
    ]))

  it.each([[['user:pw@host:1']], [['host:99999']], [['']], [['http://a/b']]])('%j are none', (brokers) => {
    const sentence = refusal(brokers)
    expect(sentence).toContain('write host:port')
    expect(sentence).not.toContain('pw')
  })

  it('are not left out', () => expect(refusal([])).toContain('at least one'))
})

describe('TLS', () => {
  it.each([
    [['a:1'], {}, undefined],
    [['a:1'], { tls: {} }, {}],
    [['ssl://a:1'], {}, {}],
    [['a:1'], { tls: { insecureSkipVerify: true } }, { rejectUnauthorized: false }],
  ] as const)('of %j with %j is %j', (brokers, spec, tls) => expect(plan(brokers, spec).tls).toEqual(tls))

  it('has the CAs of the sink', () => expect(plan(['a'], { tls: {} }, { caBundle: 'PEM' }).tls).toEqual({ ca: 'PEM' }))
})

describe('a user', () => {
  const secure = { tls: {} }
  it('proves it by SCRAM-SHA-256, or as it is said; a token goes before a password', () => {
    expect(plan(['a']).sasl).toBeUndefined()
    expect(plan(['a'], {}, { credentials: user }).sasl).toEqual({
      ...{ mechanism: 'scram-sha-256', username: 'u', password: 'pw-of-u' },
    })
    const credentials = { ...user, token: bytes('t0ken') }
    const spec = { ...secure, options: { sasl_mechanism: 'plain' } }
    expect(plan(['a'], spec, { credentials }).sasl).toMatchObject({ mechanism: 'plain', password: 't0ken' })
  })

  it('is not half of one, and of no unknown kind', () => {
    expect(refusal(['a'], {}, { credentials: { username: bytes('u') } })).toContain('no token or password')
    expect(refusal(['a'], {}, { credentials: { password: bytes('pw-of-u') } })).toContain('no username')
    expect(refusal(['sasl_ssl://a'])).toContain('no credentials')
    expect(refusal(['a'], { options: { sasl_mechanism: 'GSSAPI' } }, { credentials: user })).toContain('GSSAPI')
  })

  it('shows no password in the clear, but where Kollect is followed', () => {
    const spec = { options: { sasl_mechanism: 'PLAIN' } }
    expect(refusal(['a'], spec, { credentials: user })).toContain('PLAIN without TLS')
    expect(plan(['a'], spec, { credentials: user }, 'original').sasl).toMatchObject({ mechanism: 'plain' })
  })
})
