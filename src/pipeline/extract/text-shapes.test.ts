import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../test/cpu.ts'
import { TextCleaner } from './sensitive-text.ts'

const cleaner = new TextCleaner()
const clean = (text: string) => cleaner.clean(text, (value) => value)
const SECRET = 'Zq7hunter2'
const prose = (length: number) => 'lorem ipsum '.repeat(length / 12)

describe('a secret is not shown', () => {
  it.each([
    // A quoted value that begins on the line of another one.
    `export PASSWORD=$1; export TOKEN='abc\n${SECRET}'\nx=1`,
    `{ user: 'a', password: null, privateKey: \`abc\n${SECRET}\n\` }`,
    `connect(password=pw, token="""abc\n${SECRET}\n""")`,
    `c = { password = 1, secret = """abc\n${SECRET}""" }`,
    `PASSWORD=$A SECRET="abc\n${SECRET}" run`,
    `export PASSWORD=$1; export A="b\nc"; export TOKEN='abc\n${SECRET}'`,
    // Texts that are put together over lines.
    `f("password", "a" +\n  "${SECRET}")`,
    `String password = "a"\n    + "b"\n    + "${SECRET}";`,
    `$password = 'a' .\n  '${SECRET}';`,
    `password = "a" || "b" +\n "c" +\n "${SECRET}"`,
    `connect('x', password, 1); setToken("token", "a"\n  + "${SECRET}")`,
    `https://auth:8080/${SECRET}@db`,
    // A heredoc that holds its own last word, deeper indented.
    `PASSWORD=$(cat <<EOF\na\n  EOF\n${SECRET}\nEOF\n)`,
    // Entries, whatever stands between name and value.
    `- name: DB_PASSWORD\n  tags:\n  - a\n  - b\n  value: ${SECRET}`,
    `- {name: DB_PASSWORD, meta: {a: b}, value: ${SECRET}}`,
    `- {name: DB_PASSWORD, meta: [{a: "b}"}],\n   value: ${SECRET}}`,
    `- name: DB_PASSWORD\n  description: |\n    the password\n    - of the db\n  value: ${SECRET}`,
    `- name: DB_PASSWORD\n${Array.from({ length: 40 }, (_, i) => `  a${i}: 1\n`).join('')}  value: ${SECRET}`,
    `- name: DB_PASSWORD\n  description: ${prose(9000)}\n  value: ${SECRET}`,
    `- value: ${SECRET}\n  description: ${prose(9000)}\n  name: DB_PASSWORD`,
    `// c\n{\n "name": "DB_PASSWORD",\n "meta": {\n  "a": 1\n },\n "value": "${SECRET}"\n}`,
    `variable "db_password" {\n  type = object({ a = string })\n  validation {\n    condition = true\n  }\n  default = "${SECRET}"\n}`,
    `- {value: ${SECRET}, meta: {a: b}, name: DB_PASSWORD}`,
    `- {value: ${SECRET},\n   name: DB_PASSWORD}`,
    `- {name: DB_PASSWORD, key: a, meta: {b: c}, value: ${SECRET}}`,
    `// c\n[{"value": "${SECRET}", "tags": ["a}"],\n "name": "DB_PASSWORD"}]`,
    `<add value="${SECRET}"\n     name="DbPassword"/>`,
    // Elements of XML.
    `<property><name lang="en">db.password</name><value>${SECRET}</value></property>`,
    `<node name="credentials"><node name="user">u</node><node name="alpha">${SECRET}</node></node>`,
    `<credentials><credentials>a</credentials><credentials/><x>${SECRET}</x></credentials>`,
    `<secret>\n${prose(40_000)}${SECRET}\n</secret>`,
    `<property name="password" a="${'x'.repeat(3000)}">${SECRET}</property>`,
    `<property>\n<name>db.password</name>\n<description>${prose(9000)}</description>\n<value>${SECRET}</value>\n</property>`,
    `<property><value>${SECRET}</value><description>${prose(9000)}</description><name>db.password</name></property>`,
    `<x:property x:name="password" x:value="${SECRET}"/>`,
    `<Environment name="db/password" type="java.lang.String" value="${SECRET}"/>`,
    // Addresses.
    `postgres://app:2024/${SECRET}@db/x`,
    `postgres://app:2024#${SECRET}@db/x`,
    `https://app:it's${SECRET}@db`,
    `https://app:2024#${SECRET}@db`,
    `https://app:${SECRET}@sha256.example.com/x`,
    `https://app:${SECRET}@sha256:5000/x`,
    `jdbc:oracle:thin:scott/"${SECRET}"@//db`,
    `jdbc:oracle:thin:scott/it's${SECRET}@db`,
    `scott/it's${SECRET}@//db:1521/x`,
    `scott/p@ss${SECRET}@//db:1521/x`,
    `scott/"p/ss ${SECRET}"@//db:1521/x`,
    `user:${SECRET}@/db?x=y`,
    `user:${SECRET}@tcp/db`,
    `user:${SECRET}@(db:3306)/x`,
    // SQL.
    `create user a identified by 'it''s ${SECRET}';`,
    String.raw`create user a identified by 'it\'s ${SECRET}';`,
    `alter user a password E'${SECRET}';`,
    `alter user a password $$${SECRET}$$;`,
    // YAML.
    `x: &db/pw ${SECRET}\ny: {password: *db/pw}`,
    `x: &a:b ${SECRET}\npassword: *a:b`,
    `x: &pä ${SECRET}\npassword: *pä`,
    `? password\n: |\n  abc\n  ${SECRET}\n`,
    `- ? credentials\n  : alpha: a\n    beta: ${SECRET}\n`,
    `? credentials\n: - a\n  - ${SECRET}\n`,
    // netrc and Redis.
    `machine h\nlogin u\naccount x\npassword ${SECRET}`,
    `machine h password ${SECRET} login u`,
    `default password ${SECRET} login u`,
    `${' '.repeat(40)}requirepass ${SECRET}`,
    `echo "requirepass ${SECRET}" >> redis.conf`,
    `printf 'masterauth ${SECRET}\\n' >> redis.conf`,
    `CONFIG SET requirepass ${SECRET}`,
    // Comments, indexes, sections.
    `// c\n{"password" /* x */ : "${SECRET}"}`,
    `// c\n{"tokens": /* x */ [\n"a]",\n"${SECRET}"\n]}`,
    `"password" // c\n : "${SECRET}"`,
    `? password # c\n: |\n  a\n  ${SECRET}`,
    `app.tokens[0]=${SECRET}`,
    `[secrets]\nalpha = "${SECRET}"\n`,
    `[registry.credentials]\nalpha = "${SECRET}"\n`,
    `credentials {\n  alpha = "${SECRET}"\n}`,
    `define('AUTH_KEY', '${SECRET}');`,
    `define('SECURE_AUTH_SALT', '${SECRET}');`,
    `define('LOGGED_IN_KEY', '${SECRET}');`,
    // Tokens of known shape.
    `a hvs.CAESIJ8xKq3pL0mN9bVcXzAs${SECRET} b`,
    `a npm_abcdefghijklmnopqrstuvwx${SECRET} b`,
    `a pypi-AgEIcHlwaS5vcmcCJDabcd${SECRET} b`,
    `a dckr_pat_abcdefghijklmn${SECRET} b`,
    `a SG.abcdefghijklmnop.abcdefg${SECRET} b`,
    `a hf_abcdefghijklmnopqrst${SECRET} b`,
    `a glrt-abcdefghij${SECRET} b`,
    `a xapp-1-A012-${SECRET} b`,
  ])('%j', (text) => {
    const left = clean(text)
    expect(left).not.toContain(SECRET)
    expect(clean(left)).toBe(left)
  })
})

describe('as readable as before is', () => {
  const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: token-service
  annotations:
    note: "it's the \\"token\\" service: see https://example.com/a?b=c#d"
spec:
  template:
    spec:
      imagePullSecrets:
      - name: regcred
      containers:
      - name: auth
        image: registry.example.com:5000/auth/web@sha256:0123456789abcdef
        args: ["--listen=:8080", "--v", "2"]
        env:
        - name: LOG
          value: "info, it's"
        volumeMounts:
        - name: tls-secret
          mountPath: /etc/tls
      volumes:
      - name: tls-secret
        projected: {sources: []}
      - name: web
        secretName: web-tls
`
  const nginx = `user www-data;
# it's a token of what can be done
map $http_upgrade $connection_upgrade { default upgrade; '' close; }
server {
  listen 443 ssl;
  ssl_certificate /etc/tls/tls.crt;
  location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; }
  location /auth/ { proxy_pass http://web:8080/x/@me; proxy_set_header Host $host; }
}
`
  it.each([
    ['a Deployment', deployment],
    ['a configuration of nginx', nginx],
    ['prose', 'A token is what you hand in at the door; its value: none. Name it, and value it: "thanks".\n'],
    ['an address of the web', 'https://registry:5000/v2/x@y and https://host:8080/@scope/pkg and a/b@c'],
    ['an import', `import x from '@/auth'; import y from "@/components/token"; const path = 'a:b'`],
    [
      'a chart',
      'apiVersion: v2\nname: token-service\nversion: 1.0.0\ndependencies:\n- name: redis\n  version: 1\n---\nvalue: 1\n',
    ],
    ['names in lists', '- name: token\n  x: y\n- name: b\n  value: c\n'],
    ['elements', '<a><name lang="en">user</name><value>x</value></a><b name="x/y" value="z"/>'],
    ['code', 'function f(a) {\n  const name = "x-token";\n  const value = a;\n}\n'],
    ['an open bracket that nothing closes', '# see (a\n- name: x-token\n- name: a\n  value: b\n'],
    ['sections', '[server]\nport = 1\n[auth.basic]\nenabled = true\n'],
  ])('%s', (_, text) => expect(clean(text)).toBe(text))
})

describe('in time that is linear in the text', () => {
  const times = (part: string) => part.repeat(2 ** 20 / part.length)
  it.each([
    ['entries in each other', times('{name: token, a: ')],
    ['entries that nothing ends', `${times('  - a: b\n')}`.replace(/^/, 'name: token\n')],
    ['entries at their ends', times('- name: token\n  a: b\n')],
    ['entries, deeper and deeper', Array.from({ length: 1400 }, (_, i) => `${' '.repeat(i)}name: token\n`).join('')],
    [
      'entries, less and less deep',
      Array.from({ length: 1400 }, (_, i) => `${' '.repeat(1400 - i)}name: token`).join('\n'),
    ],
    ['names behind quotes', times(`' name: token, `)],
    ['names behind quotes on lines', times(`"a'\nb, name: token, `)],
    ['values above names', times('value: a\n name: token\n')],
    ['elements of one name', times('<password>')],
    ['elements of one name, half of them closed', times('<password><password></password>')],
    ['names of elements', times('<name a="b">password</name><x>')],
    ['quotes that open', times('password: a, b="c\n')],
    ['quotes that open on one line', times('password: a, b="c ')],
    ['sections', times('[secrets]\n')],
    ['blocks', times('secrets {\n')],
    ['comments', times('password /* ')],
    ['quotes of SQL', times("identified by '''")],
    ['explicit keys', times('? password\n: ')],
    ['addresses', times('postgres://a:1/b@')],
    ['users', times("a/b'c@//")],
    ['logins', times('machine a login b account c ')],
  ])('%s', (_, text) => {
    const since = process.cpuUsage()
    clean(text)
    expect(cpuMs(since)).toBeLessThan(4_000)
  })
})
