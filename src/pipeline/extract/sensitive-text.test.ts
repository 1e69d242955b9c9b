import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SensitiveNames } from './sensitive-key.ts'
import { cleanText } from './sensitive-text.ts'

const clean = (text: string) => cleanText(text, (value) => value)

describe('a text', () => {
  it.each([
    ['postgres://web:pa/ss@db:5432/x', 'postgres://[redacted]@db:5432/x'],
    ['https://token123@git.example.com/x', 'https://[redacted]@git.example.com/x'],
    ['amqp://u:p%40@h1,u2:p2@h2', 'amqp://[redacted]@h2'],
    ['Server=db;Password=a;b c', 'Server=db;Password=[redacted]'],
    ['api_key: abc def', 'api_key: [redacted]'],
    ['{broken "token": "abc", "a": 1', '{broken "token": [redacted], "a": 1'],
    ['run --db-password abc --v', 'run --db-password [redacted] --v'],
    ['Authorization: Basic dXNlcjpwYXNz', 'Authorization: [redacted]'],
    ['x Bearer abcdefghijkl y', 'x Bearer [redacted] y'],
    ['see eyJhbGciOiJI.eyJzdWIiOiIx.sig_nature ok', 'see [redacted] ok'],
    [`ghp_${'a'.repeat(36)}`, '[redacted]'],
    [
      '- name: DB_PASSWORD\n  value: a b\n- name: A\n  value: c',
      '- name: DB_PASSWORD\n  value: [redacted]\n- name: A\n  value: c',
    ],
    [
      '- name: "db.password" # of it\n  description: x\n  value: "ab"\n',
      '- name: "db.password" # of it\n  description: x\n  value: [redacted]\n',
    ],
    ['- value: ab\n  name: TOKEN\n', '- value: [redacted]\n  name: TOKEN\n'],
    ['- { name: TOKEN, value: ab }\n- b', '- { name: TOKEN, value: [redacted]\n- b'],
    ['- name: KEY_TOKEN\n  value: |\n    a\n    b\n- c', '- name: KEY_TOKEN\n  value: [redacted]\n- c'],
    ['<a><dbPassword>x y</dbPassword></a>', '<a><dbPassword>[redacted]</dbPassword></a>'],
    ['<p name="password" value="ab"></p>', '<p name="password" value=[redacted]'],
    ['machine h login me password ab cd', 'machine h login me password [redacted] cd'],
    ["create user a with PASSWORD 'a b';", 'create user a with PASSWORD [redacted];'],
    ["create user a identified by 'a b';", 'create user a identified by [redacted];'],
    ['kind: Secret # of the shop\ndata: {a: b}', '[redacted]'],
    ['- {kind: Secret, data: {a: b}}', '[redacted]'],
    ['kind: !!str Secret\ndata: {a: b}', '[redacted]'],
    ['a: 1\npassword: |-\n  x\n  y\nb: 2', 'a: 1\npassword: [redacted]\nb: 2'],
  ])('%j leaves as %j', (text, left) => expect(clean(text)).toBe(left))

  it.each([
    ...[
      'docker-pullable://registry:5000/web@sha256:0123',
      'https://registry.example.com:5000/v2/',
      'registry.example.com/auth/web:1.2',
      'secretName',
      'passwordless login is on',
    ],
    ...[
      '2026-01-01T00:00:00Z',
      'mail me@example.com',
      '--listen=:8080',
      'kind: SecretStore\nmetadata: {}',
      'this kind: Secrets of the shop',
      'https://example.com/a@b',
      '{"a": 1}',
      '{{ .Values.image }}',
      'the key is under the mat',
      '- name: TOKEN\n- name: A\n  value: ab',
      '- name: A\n  value: ab\n- name: TOKEN\n  valueFrom: x',
      'name: token-reader\nvalue: ab',
      'the password is asked for',
    ],
  ])('%j is no secret', (text) => expect(clean(text)).toBe(text))

  it.each(['://:/x@', 'postgres://web:pa/ss@db', '://u:://@'])('%j is clean once it was cleaned', (text) => {
    const once = clean(text)
    expect(clean(once)).toBe(once)
  })

  it('is clean once it was cleaned', () => {
    const words = fc.constantFrom(
      'password',
      'token=',
      ': ',
      '=',
      'x',
      '\n',
      '  ',
      '"',
      "'",
      '://',
      '@',
      'u:',
      'Bearer ',
      '--secret ',
      'name: ',
      'value: ',
      '<token>',
      '-u ',
      'kind: Secret',
      '|',
      '{',
      '}',
      '[',
      ']',
      ',',
      'a1',
      '\\',
    )
    fc.assert(
      fc.property(fc.array(words, { maxLength: 24 }), (parts) => {
        const once = clean(parts.join(''))
        expect(clean(once)).toBe(once)
      }),
      { numRuns: 500 },
    )
  })

  it.each([
    ['spaces', `password${' '.repeat(200_000)}`],
    ['names', 'password'.repeat(40_000)],
    ['assignments', 'password='.repeat(40_000)],
    ['quotes', 'password="'.repeat(40_000)],
    ['addresses', '://a:b'.repeat(50_000)],
    ['dashes', ' --a-'.repeat(60_000)],
    ['keys', '-----BEGIN PRIVATE KEY'.repeat(15_000)],
    ['lines', 'password: |\n '.repeat(25_000)],
    ['words', `${'a'.repeat(300_000)}=secret`],
    ['dots', 'eyJaaaaaaaa.'.repeat(25_000)],
    ['entries', 'name: password\n'.repeat(20_000)],
    ['lines of an entry', `name: password\n${'a: b\n'.repeat(60_000)}`],
    ['values', 'value: a '.repeat(33_000)],
    ['values of entries', 'value: a\nname: a\n'.repeat(18_000)],
    ['names in one', `key: ${'a.'.repeat(150_000)}`],
    ['elements', '<password>'.repeat(30_000)],
    ['logins', 'login a password '.repeat(17_000)],
    ['kinds', '\n'.repeat(150_000) + 'kind: Secrex'.repeat(10_000)],
  ])('of 300,000 letters of %s is looked through in time', (_, text) => {
    const since = process.cpuUsage()
    clean(text)
    const { user, system } = process.cpuUsage(since)
    expect((user + system) / 1e6).toBeLessThan(4)
  })
})

describe('a name', () => {
  const names = new SensitiveNames(['pin', 'Internal-Code', 'xy'])

  it.each([
    'password',
    'DB_PASSWORD',
    'dbPassword',
    'db-password',
    'clientSecret',
    'API_TOKEN',
    'x-api-key',
    'apiKey',
    'API KEY',
    'private_key',
    'auth',
    'basicAuth',
    'credentials',
    'DB_PASS',
    'dbPass',
    'PGPASSWORD',
    'AWS_SECRET_ACCESS_KEY',
    'connectionString',
    '.dockerconfigjson',
    'secretKeyRef',
    'PIN',
    'userpin',
    'internal_code',
    'xy',
    '--password',
    'password.txt',
  ])('%s is secret', (name) => expect(names.has(name)).toBe(true))

  it.each([
    'name',
    'secretName',
    'imagePullSecrets',
    'tokenExpirationSeconds',
    'compass',
    'bypass',
    'authority',
    'passwordPolicy',
    'galaxy',
    'key',
    'value',
    '',
  ])('%s is not', (name) => expect(names.has(name)).toBe(false))
})
