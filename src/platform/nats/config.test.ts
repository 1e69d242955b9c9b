import { nkeys } from '@nats-io/transport-node'
import { expect, it } from 'vitest'
import { parseNatsCreds } from './config.ts'

const seed = new TextDecoder().decode(nkeys.createUser().getSeed())
const file = (jwt: string, key: string) =>
  `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n\n*** a note of the program that made it ***\n\n-----BEGIN USER NKEY SEED-----\n${key}\n------END USER NKEY SEED------`

it('reads a .creds file however it ends and whatever its lines end with', () => {
  const text = file('a.b.c', seed)
  for (const one of [text, `${text}\n`, `\n${text}\n\n*****\n`, text.replaceAll('\n', '\r\n')])
    expect(parseNatsCreds(one)).toEqual({ kind: 'creds', jwt: 'a.b.c', seed })
})

it('says what a .creds file lacks, without what is secret', () => {
  const faultOf = (text: string) => {
    const read = parseNatsCreds(text)
    return 'fault' in read ? read.fault : ''
  }
  expect(faultOf(seed)).toContain('holds no JWT')
  expect(faultOf(file('no-token', seed))).toContain('holds no JWT')
  expect(faultOf(file('a.b.c', 'SU-s3cret'))).toMatch(/^holds no seed(?!.*s3cret)/)
  expect(faultOf(file('a.b.c', seed).split('*')[0] ?? '')).toContain('holds no seed')
  // Of the last letter some bits count for nothing.
  const mistyped = `${seed.slice(0, 20)}${seed[20] === 'A' ? 'B' : 'A'}${seed.slice(21)}`
  expect(faultOf(file('a.b.c', mistyped))).toContain('holds no seed')
  expect(faultOf('')).toContain('holds no JWT')
})
