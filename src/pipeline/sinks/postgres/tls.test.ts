import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TestAuthority } from '../../ingest/stream/test/certificates.ts'
import { at, deliveryOf, rowsTo, writingOf } from '../testing/delivery.ts'
import { onPostgres, PASSWORD, postgresMissing, startPostgres, type TestPostgres } from '../testing/postgres-server.ts'
import { aPlace, closed, type Place } from './testing/places.ts'

const signal = new AbortController().signal
const west = writingOf('west')

describe.skipIf(postgresMissing !== undefined)(onPostgres('a sink in PostgreSQL over TLS'), () => {
  let folder: string
  let server: TestPostgres
  let place: Place
  let ours: TestAuthority
  let other: TestAuthority
  beforeAll(async () => {
    ours = await TestAuthority.make('ours')
    other = await TestAuthority.make('other')
    // Its certificate is that of 127.0.0.1 alone.
    const { cert, key } = await ours.sign('database', 'server')
    folder = mkdtempSync(join(tmpdir(), 'postgres-tls-'))
    const [certFile, keyFile] = [join(folder, 'server.crt'), join(folder, 'server.key')]
    writeFileSync(certFile, cert)
    writeFileSync(keyFile, key, { mode: 0o600 })
    if (process.getuid?.() === 0) for (const path of [folder, certFile, keyFile]) chownSync(path, 65_534, 65_534)
    server = await startPostgres(['ssl = on', `ssl_cert_file = '${certFile}'`, `ssl_key_file = '${keyFile}'`])
    place = await aPlace(server)
  })
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]()
    if (folder) rmSync(folder, { recursive: true, force: true })
  })

  const looked = async (mode: string, ca?: TestAuthority, host = '127.0.0.1') => {
    const dsn = `postgres://app:${encodeURIComponent(PASSWORD)}@${host}:${server.port}/postgres${mode && `?sslmode=${mode}`}`
    return closed(place.sink('west', { dsn, ...(ca && { caBundle: ca.pem }) })).probe(signal)
  }
  const verified = { verified: true, message: 'the tables can be written', warnings: [] }

  it.each(['verify-full', 'verify-ca', 'require', ''])('verifies it by our CA with sslmode %j', async (mode) =>
    expect(await looked(mode, ours)).toEqual(verified),
  )

  it('writes rows over it, encrypted', async () => {
    const sink = closed(place.sink('west', { dsn: server.dsn('?sslmode=verify-full'), caBundle: ours.pem }))
    await sink.deliver(deliveryOf(west, at(1), rowsTo(3)), signal)
    expect(await place.count()).toBe(3)
    const [seen] = await server.query<{ encrypted: boolean }>(
      `select bool_and(ssl) as encrypted from pg_stat_ssl join pg_stat_activity using (pid) where usename = 'app'`,
    )
    expect(seen?.encrypted).toBe(true)
  })

  it.each(['verify-full', 'verify-ca', ''])('refuses another CA with sslmode %j, and says why', async (mode) => {
    const { verified: isVerified, message } = await looked(mode, other)
    expect(isVerified).toBe(false)
    expect(message).toMatch(
      /^the certificate of the database cannot be verified \(.+\): give the CA that signed it in spec\.tls/,
    )
  })

  it('refuses a CA that the system does not know where none is given', async () =>
    expect((await looked('verify-full')).message).toContain('cannot be verified'))

  it('refuses a name that is not that of the certificate with verify-full, and takes it with verify-ca', async () => {
    const { verified: isVerified, message } = await looked('verify-full', ours, 'localhost')
    expect([isVerified, message]).toEqual([
      false,
      expect.stringContaining('cannot be verified (ERR_TLS_CERT_ALTNAME_INVALID)'),
    ])
    expect(await looked('verify-ca', ours, 'localhost')).toEqual(verified)
  })

  it.each(['require', ''])('warns where nobody verifies it: sslmode %j without a CA', async (mode) => {
    const { verified: isVerified, warnings } = await looked(mode)
    expect([isVerified, warnings]).toEqual([true, [expect.stringContaining('is not verified')]])
  })
})
