import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { generateServingCertificate } from '#apiserver'
import { allSettings, readApiConfig, readManagerConfig, readUpConfig } from './config.ts'

describe('readUpConfig', () => {
  it('takes CAs of clients for the embedded API, and nothing that is none', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'config-'))
    onTestFinished(() => rm(dir, { recursive: true, force: true }))
    const read = async (text: string) => {
      const file = join(dir, 'ca.pem')
      await writeFile(file, text)
      return readUpConfig({ CONTROL_PLANE_CLIENT_CA: file }).config.controlPlane.clientCa
    }
    const { ca, cert } = await generateServingCertificate({ hosts: ['localhost'] })
    expect(await read(ca + ca)).toBe(ca + ca)
    for (const wrong of ['', 'words', cert, ca + cert, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'])
      await expect(read(wrong)).rejects.toThrow(/CONTROL_PLANE_CLIENT_CA must name a PEM file/)
    expect(() => readUpConfig({ CONTROL_PLANE_CLIENT_CA: join(dir, 'none') })).toThrow(/does not exist/)
  })

  it('takes keys that seal what is stored, from a file too, and nothing that is none', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'config-'))
    onTestFinished(() => rm(dir, { recursive: true, force: true }))
    const keys = [randomBytes(32), randomBytes(32)]
    const text = keys.map((key) => key.toString('base64')).join('\n')
    await writeFile(join(dir, 'keys'), `${text}\n`)
    const read = (env: Record<string, string>) => readUpConfig(env).config.controlPlane.encryptionKeys
    expect(read({})).toEqual([])
    expect(read({ ENCRYPTION_KEY_FILE: join(dir, 'keys') })).toEqual(keys)
    expect(read({ ENCRYPTION_KEY: keys.map((key) => key.toString('hex')).join(',') })).toEqual(keys)
    await writeFile(join(dir, 'keys'), '\n')
    expect(() => read({ ENCRYPTION_KEY_FILE: join(dir, 'keys') })).toThrow(/ENCRYPTION_KEY holds something else/)
    expect(() => read({ ENCRYPTION_KEY_FILE: join(dir, 'none') })).toThrow(/does not exist/)
    const wrong = () => read({ ENCRYPTION_KEY: 'correct horse battery staple' })
    expect(wrong).toThrow(/openssl rand -base64 32/)
    expect(wrong).not.toThrow(/correct horse/)
  })

  it('binds to loopback with a local administrator by default', () => {
    const { config } = readUpConfig({})
    expect(config.web).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      access: { identity: { localAdministrator: {} }, semantics: 'strict', audit: { level: 'denials' } },
    })
  })

  it.each(['0.0.0.0', '::', '10.0.0.5', 'hub.example'])(
    'refuses to bind to %s without a sign-in method, with the reason',
    (host) => {
      expect(() => readUpConfig({ API_HOST: host })).toThrow(/no sign-in method is configured.*TRUSTED_PROXIES/)
    },
  )

  it('lets a flag win over the environment', () => {
    expect(readUpConfig({ API_PORT: '1' }, { API_PORT: '2' }).config.web.port).toBe(2)
  })

  it('sizes the rate of requests to the fleet, or takes the one that is set', () => {
    expect(readUpConfig({}).config.web.rateLimit).toBeUndefined()
    expect(readUpConfig({ API_RATE_LIMIT: '5000' }).config.web.rateLimit).toEqual({ perSecond: 5000, burst: 10_000 })
  })

  it('accepts the older names', () => {
    expect(readUpConfig({ PORT: '9000', ALLOWED_ORIGINS: 'https://a.example' }).config.web).toMatchObject({
      port: 9000,
      corsOrigins: ['https://a.example'],
    })
  })

  it('never gives the development user to anything but loopback', () => {
    const env = { ENVIRONMENT: 'development', OAUTH_PROXY_ENABLED: 'false', ENABLE_DEV_AUTH: 'true' }
    expect(readUpConfig(env).config.web.access.identity).toHaveProperty('development')
    expect(() => readUpConfig({ ...env, API_HOST: '0.0.0.0' })).toThrow(/development user is for loopback only/)
  })
})

describe('readApiConfig', () => {
  it('reads the keys of an original manager only together with its semantics', () => {
    const loopback = { API_HOST: '127.0.0.1' }
    expect(readApiConfig(loopback).config.stateSource).toBe('clusterpulse')
    expect(() => readApiConfig({ ...loopback, STATE_SOURCE: 'original' })).toThrow(/needs RBAC_SEMANTICS=original/)
    expect(() => readApiConfig({ ...loopback, STATE_SOURCE: 'redis' })).toThrow(/STATE_SOURCE/)
    const both = { ...loopback, STATE_SOURCE: 'original', RBAC_SEMANTICS: 'original' }
    expect(readApiConfig(both).config.stateSource).toBe('original')
  })

  it('refuses its public default address until a trusted proxy is named', () => {
    expect(() => readApiConfig({})).toThrow(/no sign-in method/)
    const { identity } = readApiConfig({ TRUSTED_PROXIES: '10.0.0.0/8, ::1' }).config.web.access
    expect(identity.proxy?.trustedPeers).toEqual(['10.0.0.0/8', '::1'])
    expect(identity.localAdministrator).toBeUndefined()
  })

  it.each<[string, Record<string, string>, RegExp]>([
    ['an issuer without our own address', { OIDC_ISSUER: 'https://id.example' }, /needs PUBLIC_URL/],
    ['an issuer without TLS', { JWT_ISSUER: 'http://id.example' }, /https address/],
    ['a short secret of the proxy', { TRUSTED_PROXY_SECRET: 'short' }, /at least 16/],
    ['a short password', { LOCAL_ADMIN_PASSWORD: 'short' }, /at least 12/],
    ['a short session secret', { SESSION_SECRET: 'short', API_HOST: '127.0.0.1' }, /at least 32/],
    ['a client CA without TLS', { TRUSTED_PROXY_CA_FILE: '/etc/hostname' }, /API_TLS_CERT/],
    ['other semantics', { RBAC_SEMANTICS: 'loose', API_HOST: '127.0.0.1' }, /strict, original/],
  ])('refuses %s', (_, env, why) => {
    expect(() => readApiConfig(env)).toThrow(why)
  })

  it('takes every way of signing in together, and then nobody is administrator by being near', () => {
    const { access } = readApiConfig({
      OIDC_ISSUER: 'https://id.example',
      PUBLIC_URL: 'https://pulse.example',
      JWT_ISSUER: 'https://id.example',
      TOKEN_REVIEW: 'true',
      LOCAL_ADMIN_PASSWORD: 'correct horse battery',
      API_HOST: '127.0.0.1',
    }).config.web
    expect(Object.keys(access.identity).sort()).toEqual([
      'bearer',
      'oidc',
      'password',
      'publicUrl',
      'session',
      'tokenReview',
    ])
    expect(access.needsHub).toBe(true)
  })

  it('names every fault together', () => {
    expect(() => readApiConfig({ API_PORT: '99999', REDIS_PORT: 'x', TRUSTED_PROXIES: '10.0.0.0/33' })).toThrow(
      /REDIS_PORT[\s\S]*API_PORT[\s\S]*10\.0\.0\.0\/33/,
    )
  })

  it('reads Redis from one address', () => {
    const { config } = readApiConfig({ REDIS_URL: 'rediss://me:p%40ss@r.example:7000/3', API_HOST: '127.0.0.1' })
    expect(config.redis).toEqual({ host: 'r.example', port: 7000, db: 3, tls: true, username: 'me', password: 'p@ss' })
  })
})

describe('readManagerConfig', () => {
  it('raises documented intervals to their minimum and says so', () => {
    const { config, warnings } = readManagerConfig({ RECONCILIATION_INTERVAL: '5', CACHE_TTL: '10' })
    expect(config.collection).toMatchObject({ intervalMs: 30_000, snapshotTtlMs: 60_000 })
    expect(warnings).toHaveLength(2)
  })

  it('bounds the documented lists as the original did, or writes none', () => {
    const listsOf = (env: Record<string, string>) => readManagerConfig(env).config.resourceLists
    const defaults = { podsPerNamespace: 100, pods: 1000, deployments: 500, services: 500, labels: false }
    expect(listsOf({})).toEqual(defaults)
    const given = { MAX_PODS_PER_NAMESPACE: '5', MAX_TOTAL_PODS: '20000', COLLECT_RESOURCE_LABELS: 'true' }
    expect(listsOf(given)).toEqual({ ...defaults, podsPerNamespace: 10, pods: 20_000, labels: true })
    expect(listsOf({ RESOURCE_COLLECTION_ENABLED: 'false' })).toBeUndefined()
  })

  it.each([
    [{}, { size: '2Gi' }],
    [
      { AGENT_BUFFER_SIZE: '5Gi', AGENT_BUFFER_STORAGE_CLASS: 'fast' },
      { size: '5Gi', storageClass: 'fast' },
    ],
    [{ AGENT_BUFFER_SIZE: '0' }, undefined],
  ])('reads the volume of agents from %j', (env, expected) =>
    expect(readManagerConfig(env).config.ingester.agentBuffer).toEqual(expected),
  )

  it('refuses a size that is none', () =>
    expect(() => readManagerConfig({ AGENT_BUFFER_SIZE: 'much' })).toThrow(/AGENT_BUFFER_SIZE is "much"/))

  it.each(['8080', 'a:b', ':70000'])('refuses %j as an address', (text) =>
    expect(() => readManagerConfig({ METRICS_BIND_ADDRESS: text })).toThrow(/METRICS_BIND_ADDRESS/),
  )
})

it('describes every setting with a meaning', () => {
  for (const settings of Object.values(allSettings())) {
    expect(settings.length).toBeGreaterThan(5)
    for (const setting of settings) expect(setting.meaning).not.toBe('')
  }
})

describe('the settings of NATS', () => {
  const { publish } = readUpConfig({}).config

  it('publish nothing where none is named', () => expect(publish).toBeUndefined())

  it('take the credentials of a file, and say the defaults of the original', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'nats-settings-'))
    onTestFinished(() => rm(directory, { recursive: true, force: true }))
    const file = join(directory, 'token')
    await writeFile(file, 's3cret\n')
    const env = { NATS_URL: 'nats://a, tls://b:4443', NATS_TOKEN_FILE: file, OUTBOUND_ALLOW: '169.254.1.0/24' }
    expect(readManagerConfig(env).config.publish).toEqual({
      nats: {
        servers: [
          { host: 'a', port: 4222, tls: false },
          { host: 'b', port: 4443, tls: true },
        ],
        credentials: { kind: 'token', token: 's3cret' },
        outboundAllow: ['169.254.1.0/24'],
      },
      defaultCluster: 'local-cluster',
      periodMs: 5000,
    })
  })

  it.each([
    [{ NATS_URL: 'http://nats' }, /NATS_URL has the scheme "http"/],
    [{ NATS_URL: 'nats://hub:s3cret@nats' }, /^(?!.*s3cret)[\s\S]*NATS_URL holds a user or a token/],
    [{ NATS_URL: 'nats://a', NATS_USER: 'hub' }, /NATS_USER and NATS_PASSWORD go together/],
    [{ NATS_URL: 'nats://a', NATS_TOKEN: 'a', NATS_USER: 'b', NATS_PASSWORD: 'c' }, /give one/],
    [{ NATS_URL: 'nats://a', NATS_NKEY: 'SUno' }, /NATS_NKEY is no seed/],
    [{ NATS_URL: 'nats://a', NATS_CREDS: '/etc/nats.creds' }, /NATS_CREDS holds no JWT/],
    [{ NATS_URL: 'tls://a', NATS_CA_FILE: '/none' }, /NATS_CA_FILE names \/none, which does not exist/],
    [{ NATS_URL: 'nats://a', NATS_PERIOD: '0s' }, /NATS_PERIOD/],
  ])('refuse %j', (env, sentence) => expect(() => readUpConfig(env)).toThrow(sentence))
})
