import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../test/cpu.ts'
import { SensitiveNames } from './sensitive-key.ts'
import { TextCleaner } from './sensitive-text.ts'

const cleaner = new TextCleaner()
const clean = (text: string) => cleaner.clean(text, (value) => value)

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
    // A value does not end with its line.
    ['password: "a\n  SECRET"\nx: y', 'password: [redacted]\nx: y'],
    ["password: 'a\n\n  it''s SECRET' # c\nx: y", 'password: [redacted] # c\nx: y'],
    ["password: 'a'' SECRET'\nx: y", 'password: [redacted]\nx: y'],
    ['password: a\n  SECRET\n\n  SECRET\nx: y', 'password: [redacted]\nx: y'],
    ['password: # of it\n  SECRET\nx: y', 'password: [redacted]\nx: y'],
    ['- password:\n    SECRET\n  x: y', '- password:\n    [redacted]\n  x: y'],
    ['a:\n  password: >-\n    b\n\n    SECRET\n  x: y', 'a:\n  password: [redacted]\n  x: y'],
    ['password: &pw !!str |\n  SECRET\nx: y', 'password: [redacted]\nx: y'],
    ['passwords:\n- a\n- SECRET\nx: y', 'passwords:\n[redacted]\nx: y'],
    ['- passwords:\n  - a\n  - SECRET\n- x: y', '- passwords:\n  [redacted]\n- x: y'],
    [
      'credentials:\n  user: bob\n# of bob\n  word: SECRET\n  more:\n    - SECRET\nx: y',
      'credentials:\n  [redacted]\nx: y',
    ],
    ['? password\n: SECRET\n', '? password\n: [redacted]\n'],
    ['x: {password: a\n  SECRET}\ny: z', 'x: {password: [redacted]\ny: z'],
    ['x: {password: [a, SECRET], y: z}', 'x: {password: [redacted], y: z}'],
    ['{ // c\n "password": [ // it\'s ]\n  "SECRET"\n ],\n "x": 1 }', '{ // c\n "password": [redacted],\n "x": 1 }'],
    ['{ /* c */ "auth": {"a": "}", "b": "SECRET"}, "x": 1 }', '{ /* c */ "auth": [redacted], "x": 1 }'],
    ['{"password":\n"SECRET",\n"x": 1,}', '{"password":\n[redacted],\n"x": 1,}'],
    ['tokens = [\n  "a]", # it\'s ]\n  "SECRET",\n]\nx = 1', 'tokens = [redacted]\nx = 1'],
    ['password = """\n"a"\nSECRET\n"""\nx = 1', 'password = [redacted]\nx = 1'],
    ["password = '''\nSECRET'''\nx = 1", 'password = [redacted]\nx = 1'],
    ['db_password = <<EOT\nSECRET\nEOT\nx = 1', 'db_password = [redacted]\nx = 1'],
    ['db_password = b(<<-"EOT"\n  SECRET\n  EOT\n)\nx = 1', 'db_password = [redacted]\n)\nx = 1'],
    ['tokens = toset([\n  "SECRET",\n])\nx = 1', 'tokens = [redacted]\nx = 1'],
    ['db.password=\\\n  SECRET\nx=1', 'db.password=[redacted]\nx=1'],
    ['db.password=a\\\r\nb\\\r\nSECRET\r\nx=1', 'db.password=[redacted]\r\nx=1'],
    ['password = a\n  SECRET\nx = 1', 'password = [redacted]\nx = 1'],
    ['PASSWORD="a\nSECRET"\nx=1', 'PASSWORD=[redacted]\nx=1'],
    ['x = {\n  password = "a" +\n    "SECRET"\n}', 'x = {\n  password = [redacted]\n}'],
    ['password: {{ if x }}\n  SECRET\n{{ end }}\nx: y', 'password: [redacted]\n{{ end }}\nx: y'],
    ['password: (a) SECRET\nPASSWORD=[a] SECRET', 'password: [redacted]\nPASSWORD=[redacted]'],
    ['password: {a: b} # c', 'password: [redacted] # c'],
    // Pairs of other shapes.
    [
      '<property>\n<name>a.ConnectionPassword</name>\n<value>SECRET</value>\n</property><a>b</a>',
      '<property>\n<name>a.ConnectionPassword</name>\n<value>[redacted]</value>\n</property><a>b</a>',
    ],
    [
      '<property><name>x.password</name><description>d</description><value><![CDATA[SECRET]]></value></property>',
      '<property><name>x.password</name><description>d</description><value>[redacted]</value></property>',
    ],
    [
      '<property><value>SECRET</value><name>x.password</name></property>',
      '<property><value>[redacted]</value><name>x.password</name></property>',
    ],
    [
      '<key>password</key>\n<string>SECRET</string><a>b</a>',
      '<key>password</key>\n<string>[redacted]</string><a>b</a>',
    ],
    ['<entry key="db.password">SECRET</entry><a>b</a>', '<entry key="db.password">[redacted]</entry><a>b</a>'],
    [
      '<property name="password"><value>SECRET</value></property><a>b</a>',
      '<property name="password">[redacted]</property><a>b</a>',
    ],
    ['<password type="a"><![CDATA[SECRET]]></password><a>b</a>', '<password type="a">[redacted]</password><a>b</a>'],
    ['<x y="{&quot;password&quot;:&quot;SECRET&quot;}"/>', '<x y="{&quot;password&quot;:[redacted]'],
    ["define('DB_PASSWORD', 'SECRET');\nx", "define('DB_PASSWORD', [redacted]);\nx"],
    ['set("db.password",\n  "SECRET")', 'set("db.password",\n  [redacted])'],
    ["$cfg['db']['password'] = 'SECRET';\nx", "$cfg['db']['password'] = [redacted];\nx"],
    ['PASSWORD ?= SECRET\nx ?= y', 'PASSWORD ?= [redacted]\nx ?= y'],
    ['port 1\nrequirepass SECRET\n', 'port 1\nrequirepass [redacted]\n'],
    ['masterauth "SECRET"', 'masterauth [redacted]'],
    ['sentinel auth-pass mymaster SECRET', 'sentinel auth-pass [redacted]'],
    ['user default on >SECRET ~* +@all', 'user default on [redacted]'],
    ['x: &pw SECRET\npassword: *pw\ny: z', 'x: &pw [redacted]\npassword: [redacted]\ny: z'],
    ['x: &c\n  a: SECRET\nauth:\n  <<: *c\ny: z', 'x: &c\n  [redacted]\nauth:\n  [redacted]\ny: z'],
    ['x: &a SECRET\ny: &b [*a]\npassword: *b', 'x: &a [redacted]\ny: &b [redacted]\npassword: [redacted]'],
    ['run: "{\\"password\\":\\"SE\\\\\\"CRET\\",\\"a\\":1}"', 'run: "{\\"password\\":[redacted],\\"a\\":1}"'],
    ['run: "{\\"tokens\\":[\\"a]\\",\\"SECRET\\"],\\"a\\":1}"', 'run: "{\\"tokens\\":[redacted],\\"a\\":1}"'],
    ['run: "{\\"kind\\":\\"Secret\\",\\"data\\":{\\"user\\":\\"SECRET\\"}}"', '[redacted]'],
    ['run --auth.secret SECRET --v', 'run --auth.secret [redacted] --v'],
    ['run --password \\\n  SECRET --v', 'run --password \\\n  [redacted] --v'],
    ['args:\n- --password\n- SECRET\n- --v', 'args:\n- --password\n- [redacted]\n- --v'],
    ['args: ["--password", "SECRET", "--v"]', 'args: ["--password", [redacted], "--v"]'],
    ["alter user a identified with b by 'SECRET';", 'alter user a identified with b by [redacted];'],
    // Entries.
    ['- {name: db_password, type: string, default: SECRET', '- {name: db_password, type: string, default: [redacted]'],
    ['- name: db_password\n  default: SECRET\n- a', '- name: db_password\n  default: [redacted]\n- a'],
    ['- name: db_password\n  values:\n  - a\n  - SECRET\n- a', '- name: db_password\n  values:\n  [redacted]\n- a'],
    [
      '- name: db_password\n  default: SECRET\n  value: "a\n    SECRET"\n  x: y',
      '- name: db_password\n  default: [redacted]\n  value: [redacted]\n  x: y',
    ],
    ['- defaultValue: |\n    SECRET\n  x: y\n  name: TOKEN\n', '- defaultValue: [redacted]\n  x: y\n  name: TOKEN\n'],
    ['[{default: "SECRET", x: y, name: TOKEN}', '[{default: [redacted], x: y, name: TOKEN}'],
    [
      'variable "db_password" {\n  type = string\n  default = "SECRET"\n}',
      'variable "db_password" {\n  type = string\n  default = [redacted]\n}',
    ],
    // Names.
    ['API_TOKENS=SECRET', 'API_TOKENS=[redacted]'],
    ['secrets:\n  db: SECRET', 'secrets:\n  [redacted]'],
    ['apiKeys: [SECRET, a]', 'apiKeys: [redacted]'],
    ['SECRET_KEY_BASE=SECRET', 'SECRET_KEY_BASE=[redacted]'],
    ['PASSWORD_1=SECRET\nDB_PASSWORD_OLD: SECRET', 'PASSWORD_1=[redacted]\nDB_PASSWORD_OLD: [redacted]'],
    [
      'WIFI_PSK=SECRET\nHMAC_KEY: SECRET\nPGPASS=SECRET',
      'WIFI_PSK=[redacted]\nHMAC_KEY: [redacted]\nPGPASS=[redacted]',
    ],
    ['client-key-data: SECRET', 'client-key-data: [redacted]'],
    // Addresses.
    ['DSN=app:SE:C/RET@tcp(db:3306)/x', 'DSN=app:[redacted]@tcp(db:3306)/x'],
    ['app:SECRET@unix(/run/my.sock)/x', 'app:[redacted]@unix(/run/my.sock)/x'],
    ['jdbc:oracle:thin:scott/SECRET@//db:1521/x', 'jdbc:oracle:thin:scott/[redacted]@//db:1521/x'],
    ['jdbc:oracle:thin:scott/SECRET@db:1521:x', 'jdbc:oracle:thin:scott/[redacted]@db:1521:x'],
    ['AGE-SECRET-KEY-1SECRETSECRET', '[redacted]'],
  ])('%j leaves as %j, whatever its format', (text, left) => {
    expect(clean(text)).toBe(left)
    expect(clean(left)).toBe(left)
  })

  const pem = (what: string) => `-----BEGIN ${what}-----\n${'MIIEowIBAAKCAQEA'.repeat(20)}\n-----END ${what}-----\n`
  const packed = (text: string) => Buffer.from(text).toString('base64')
  const lines = (text: string) => text.replace(/.{64}(?=.)/g, '$&\n    ')

  it.each([
    ['as it is', (key: string) => key, '[redacted]'],
    ['in a kubeconfig', (key: string) => `a: b\nx: ${key}\nc: d`, 'a: b\nx: [redacted]\nc: d'],
    ['in lines', (key: string) => `a: |\n    ${lines(key)}\nc: d`, 'a: |\n    [redacted]\nc: d'],
    ['in a variable', (key: string) => `X='${key}'`, "X='[redacted]'"],
  ])('shows no private key that is packed, %s', (_, put, left) => {
    for (const what of ['RSA PRIVATE KEY', 'PRIVATE KEY', 'OPENSSH PRIVATE KEY', 'ENCRYPTED PRIVATE KEY'])
      for (const before of ['', 'x', 'xy', pem('CERTIFICATE')])
        expect(clean(put(packed(before + pem(what))))).toBe(left)
    const certificate = put(packed(pem('CERTIFICATE') + pem('PUBLIC KEY')))
    expect(clean(certificate)).toBe(certificate)
  })

  it('knows the names that a profile gives', () => {
    const text = 'pin: 1234\nInternalCode = "a\n b"\nxy: a\npinned: b'
    const left = 'pin: [redacted]\nInternalCode = [redacted]\nxy: [redacted]\npinned: b'
    expect(new TextCleaner(['pin', 'internal-code', 'xy']).clean(text, (value) => value)).toBe(left)
  })

  it('never shows what stands behind a telling name, in any spelling of any format', () => {
    const name = fc.constantFrom(
      ...[
        'password',
        'db_password',
        'dbPassword',
        'API_TOKEN',
        'apiKeys',
        'client-secret',
        'credentials',
        'PASSWORD_1',
        'auth',
      ],
    )
    const secret = fc.string({ unit: fc.constantFrom(...'abzAZ059+/=_-.:#$%*!?~^&'), minLength: 8, maxLength: 24 })
    const before = fc.constantFrom('', 'x: y\n', 'x = 1\n', '# it\'s "x\n', 'a:\n  b: c\n', '<a>b</a>\n')
    const put = fc.constantFrom<((name: string, it: string) => string)[]>(
      (n, s) => `${n}: Q${s}`,
      (n, s) => `${n}: "Q${s}"`,
      (n, s) => `  - ${n}: 'a\n      Q${s}'`,
      (n, s) => `${n}: "a\n  Q${s}"`,
      (n, s) => `${n}: a\n  Q${s}`,
      (n, s) => `a:\n  - ${n}: |-\n      a\n\n      Q${s}`,
      (n, s) => `${n}:\n- a\n- Q${s}`,
      (n, s) => `${n}:\n  a:\n    b: c\n    d: Q${s}`,
      (n, s) => `a: &it "Q${s}"\n${n}: *it`,
      (n, s) => `{a: {${n}: [b, "Q${s}"]}}`,
      (n, s) => `{ // a\n  "${n}": [\n    "b",\n    "Q${s}"\n  ]\n}`,
      (n, s) => `${n} = [\n  "b",\n  "Q${s}",\n]`,
      (n, s) => `${n} = """\nQ${s}\n"""`,
      (n, s) => `${n} = <<-EOT\nb\nQ${s}\nEOT`,
      (n, s) => `a.${n}=\\\n    Q${s}`,
      (n, s) => `export ${n}="b\nQ${s}"`,
      (n, s) => `<property><name>a.${n}</name><value>Q${s.replaceAll('&', '&amp;')}</value></property>`,
      (n, s) => `<entry key="${n}">Q${s}</entry>`,
      (n, s) => `<${n}>Q${s}</${n}>`,
      (n, s) => `define('${n}', 'Q${s}');`,
      (n, s) => `- name: ${n}\n  default: "b\n    Q${s}"`,
      (n, s) => `- default: Q${s}\n  name: ${n}`,
      (n, s) => `run: "${JSON.stringify({ a: { [n]: ['b', `Q${s}`] } }).replace(/["\\]/g, '\\$&')}"`,
      (n, s) => `cmd --${n} 'Q${s}' --v`,
      (n, s) => `args:\n- --${n}\n- Q${s}`,
    )
    fc.assert(
      fc.property(name, secret, before, put, fc.boolean(), before, (n, s, a, spell, isWindows, b) => {
        const text = `${a}${spell(n, s)}\n${b}`
        const left = clean(isWindows ? text.replaceAll('\n', '\r\n') : text)
        expect(left).not.toContain(`Q${s.slice(0, 7)}`)
        expect(left.replaceAll('\r', '').startsWith(a)).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })

  it.each([
    ...[
      'tokenizer: x\n  y: z',
      'passwordPolicy:\n  length: 12',
      'key: value\nvalue: x',
      'publicKey: abc\npublic-key-data: abc',
      'volumes:\n- name: x\n  secretName: foo\n  defaultMode: 420',
      'tokenExpiry: 1h',
      'secretKeyRef:\n  name: x\n  key: y',
      'imagePullSecrets:\n- name: regcred\n',
      'secrets:\n- name: a\n- name: b\n  namespace: c\nx: y',
      'max_tokens: 4096\nmaxTokens: 5',
      'tokens: 12\nsecrets: "10"\ncount/secrets: 3',
      '<name>a.user</name><value>x</value>',
      '<entry key="db.user">x</entry>',
      "define('DB_USER', 'x');",
      '- name: db_user\n  default: x\n  values: [a]',
      'password:\nuser: bob',
      'PASSWORD=\nHOST=db',
      'me@example.com (me@tcp(x))',
      'user www-data;\nserver {}',
    ],
    ...[
      'docker-pullable://registry:5000/web@sha256:0123',
      'https://registry.example.com:5000/v2/',
      'see http://auth:8080/login and https://vault-token:8200, then go on',
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
    ['packed keys', `${'LS0tLS1CRUdJTi'.repeat(20_000)} UFJJVkFURSBLRV`],
    ['anchors', `password: *a\n${'x: &a\n '.repeat(40_000)}`],
    ['drivers', 'a:b@tcp('.repeat(40_000)],
    ['users', 'a/b@//'.repeat(50_000)],
  ])('of 300,000 letters of %s is looked through in time', (_, text) => {
    const since = process.cpuUsage()
    clean(text)
    expect(cpuMs(since)).toBeLessThan(4_000)
  })
})

describe('of 1 MB a hostile text is looked through in time', () => {
  const times = (text: string) => text.repeat(Math.ceil(2 ** 20 / text.length))
  it.each([
    ['brackets', `password: ${times('[')}`],
    ['brackets, one after the other', times('password: [')],
    ['brackets on lines of their own', times('password: [\n')],
    ['brackets and quotes', `password: [${times(' "a"x')}`],
    ['brackets of entries', times('value: [\nname: token\n')],
    ['brackets in each other', times('{"value": {name: token ')],
    ['passwords', times('password:')],
    ['lines of passwords', times('password:\n')],
    ['lines of commented passwords', times('# password:\n')],
    ['lines of passwords in templates', times('{{ password: x\n')],
    [
      'passwords that are deeper and deeper',
      Array.from({ length: 1400 }, (_, i) => `${' '.repeat(i)}password:`).join('\n'),
    ],
    [
      'anchors that are deeper and deeper',
      `token: *a\n${Array.from({ length: 1400 }, (_, i) => `${' '.repeat(i)}x: &a`).join('\n')}`,
    ],
    ['quotes', times('password: "a')],
    ['quotes on lines', times('password: "a\n')],
    ['quotes that go on', times(`password: 'a'b `)],
    ['escaped quotes', times('\\"password\\": \\"')],
    ['backslashes', `password: "${times('\\')}`],
    ['lines that go on', `password=${times('a\\\n')}`],
    ['heredocs', times('password = <<A\n')],
    ['elements', Array.from({ length: 60_000 }, (_, i) => `<a${i}password>`).join('')],
    ['names of elements', times('<name>password</name>')],
    ['attributes', times('<a name="password">')],
    ['calls', times("f('password',")],
    ['flags', times('--password\n- ')],
    ['entries', times('name: token\n')],
    ['values of an entry', `name: token\n${times('value: a\n')}`],
    ['names of values on one line', times('value: a, name: token, ')],
    ['pairs', times('requirepass\n')],
    ['lines of base64', `${times(`${'A'.repeat(40)}\n`)}LS0tLS1CRUdJTi`],
    ['paths', times('/a')],
    ['words', times('a ')],
    ['references', `secrets: [${times('name: a-')}`],
    ['spaces', times('password \t')],
  ])('%s', (_, text) => {
    const since = process.cpuUsage()
    clean(text)
    expect(cpuMs(since)).toBeLessThan(4_000)
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
    ...[
      'API_TOKENS',
      'SECRETS',
      'apiKeys',
      'SECRET_KEY_BASE',
      'PASSWORD_1',
      'password2',
      'DB_PASSWORD_OLD',
      'SECRET_VALUE',
    ],
    ...['PSK', 'WIFI_PSK', 'HMAC_KEY', 'PGPASS', 'client-key-data', 'CLIENT_KEY_DATA', 'masterauth'],
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
    ...['public-key-data', 'max_tokens', 'tokenizer', 'threshold', 'publicKey', 'tokenExpiry', 'oauth2', 'httpsk'],
    'key',
    'value',
    '',
  ])('%s is not', (name) => expect(names.has(name)).toBe(false))
})

it('looks through a long text once, for however many that take it, and through another one anew', () => {
  const words = 'aaaa bbbb '.repeat(100_000)
  const timed = (work: () => unknown) => {
    const before = process.cpuUsage()
    work()
    return cpuMs(before)
  }
  const clean = (text: string, more: readonly string[] = []) => new TextCleaner(more).clean(text, (value) => value)
  const once = timed(() => expect(clean(`${words}1`)).toBe(`${words}1`))
  const again = timed(() => {
    for (let i = 0; i < 20; i++) clean(`${words}1`)
  })
  expect(again).toBeLessThan(Math.max(10, once * 3))
  expect(clean(`${words}1 tint=blue`, ['tint'])).not.toContain('blue')
  expect(clean(`${words}1 tint=blue`)).toContain('blue')
  expect(clean(`${words}1 tint=blue`, ['tint'])).not.toContain('blue')
})

it.each([
  'http://auth:8080: connection refused',
  'see http://auth:8080. Then',
  '{\\"url\\":\\"http://auth:8080\\",\\"b\\":1}',
  'http://auth:8080\\nnext: 1',
  'http://auth:8080|web',
  'to=http://auth:8080&b=1',
])('keeps the port of an address, whatever stands behind it: %j', (text) => {
  expect(clean(text)).toBe(text)
})

it.each([
  ['http://auth:8080.5x', 'http://auth:[redacted]'],
  ['http://auth:8080:x@db', 'http://[redacted]@db'],
  ['http://auth:8080&token=abc', 'http://auth:8080&token=[redacted]'],
  ['auth:8080: x', 'auth:[redacted]'],
])('takes nothing else for a port: %j', (text, wanted) => {
  expect(clean(text)).toBe(wanted)
})
