import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../test/cpu.ts'
import { Scrubber } from './scrub.ts'

/** What is left of a text that stands in a ConfigMap. */
function clean(text: string, key = 'app.conf'): string {
  const scrubber = new Scrubber()
  const object = { kind: 'ConfigMap', data: { [key]: text } }
  scrubber.enter(object, false)
  return JSON.stringify(scrubber.deep(object.data))
}
const quoted = (text: string) => JSON.stringify(text)
const SECRET = 'Zq7-hunter2'

describe('Secrets in a list that says what its items are', () => {
  const list = (what: object) => ({
    kind: 'SecretList',
    apiVersion: 'v1',
    items: [{ metadata: { name: 'a' }, ...what }],
  })
  const yaml = `apiVersion: v1\nkind: SecretList\nitems:\n- metadata:\n    name: a\n  data:\n    user: ${SECRET}\n`

  it.each([
    ['data', list({ data: { user: SECRET } })],
    ['stringData', list({ stringData: { user: SECRET } })],
    ['annotations', list({ metadata: { annotations: { copy: `{"x": "${SECRET}"}` } } })],
    ['in another object', { kind: 'ManifestWork', spec: { manifests: [list({ data: { user: SECRET } })] } }],
    ['as JSON', { data: { dump: JSON.stringify(list({ data: { user: SECRET } })) } }],
    ['as JSON in JSON', { data: { dump: JSON.stringify({ x: JSON.stringify(list({ data: { user: SECRET } })) }) } }],
    ['as YAML', { data: { dump: yaml } }],
    ['as YAML in YAML', { data: { dump: `x: ${quoted(yaml)}` } }],
  ])('have nothing in them, %s', (_, object) => {
    const scrubber = new Scrubber()
    scrubber.enter(object, false)
    expect(JSON.stringify(scrubber.deep(object))).not.toContain(SECRET)
  })

  it('and only those', () => {
    const object = { kind: 'ConfigMapList', items: [{ metadata: { name: 'a' }, data: { user: 'web' } }] }
    const scrubber = new Scrubber()
    scrubber.enter(object, false)
    expect(scrubber.deep(object)).toBe(object)
  })
})

describe('a manifest of a Secret', () => {
  const manifest = `apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\nstringData:\n  user: ${SECRET}`
  it.each([
    ['in quotes', `extraDeploy: ${quoted(manifest)}\nx: y`],
    ['of Windows, in quotes', `extraDeploy: ${quoted(manifest.replaceAll('\n', '\r\n'))}\nx: y`],
    ['in quotes twice', `values: ${quoted(`extraDeploy: ${quoted(manifest)}`)}`],
    ['in quotes three times', `a: ${quoted(`values: ${quoted(`extraDeploy: ${quoted(manifest)}`)}`)}`],
    ['as JSON in quotes', `run: ${quoted(quoted(JSON.stringify({ kind: 'Secret', data: { user: SECRET } })))}`],
    ['of a folded kind', manifest.replace('kind: ', 'kind: >-\n  ')],
    ['of a template', manifest.replace('kind: Secret', 'kind: {{ "Secret" }}')],
    ['of a list', manifest.replace('Secret', 'SecretList')],
    ['with letters of XML', `<x>${manifest.replaceAll('\n', '&#10;')}</x>`],
  ])('is taken out, %s', (_, text) => expect(clean(text)).not.toContain(SECRET))

  it('is taken out of its quotes alone', () =>
    expect(clean(`a: "b\\nc"\nextraDeploy: ${quoted(manifest)}\nx: y`)).toBe(
      JSON.stringify({ 'app.conf': 'a: "b\\nc"\nextraDeploy: "[redacted]"\nx: y' }),
    ))
})

describe('what is written with escapes', () => {
  it.each([
    String.raw`x = {"pass\u0077ord": "${SECRET}",}`,
    String.raw`"pass\u0077ord" = "${SECRET}"`,
    String.raw`"pass\x77ord": "${SECRET}"`,
    String.raw`a: postgres:\/\/app:${SECRET}@db\/x`,
    String.raw`x = "\u003cpassword\u003e${SECRET}\u003c/password\u003e"`,
    `<x>&lt;password&gt;${SECRET}&lt;/password&gt;</x>`,
    `<x>&lt;add key=&quot;DbPassword&quot; value=&quot;${SECRET}&quot;/&gt;</x>`,
    String.raw`conf: "port 1\nrequirepass ${SECRET}\n"`,
    String.raw`conf: "a: b\npass\u0077ord: ${SECRET}\n"`,
    String.raw`a: "p: |\n  &#112;assword: ${SECRET}"`,
  ])('%j is as secret', (text) => expect(clean(text)).not.toContain(SECRET))

  it.each([
    String.raw`location ~ \.php$ { rewrite ^/a/(\w+)\.html$ "/b/$1?x=\"y\"" last; }`,
    String.raw`run: "echo \"it's a token of thanks\"\nexit 0\n"`,
    String.raw`args: ["-c", "set -e\necho 'a\tb' > C:\\temp\\new\n"]`,
    `<a href="x?y=1&amp;z=2">&lt;b&gt; of &quot;secret&quot; things</a>`,
    String.raw`x: "imagePullSecrets:\n- name: x\nvolumes:\n- secretName: web-tls\n"`,
    String.raw`pattern: "^[a-z\\-]+\\/(auth|token)\\/$"`,
    `banner: ${'\\/'.repeat(20)}`,
  ])('%j is readable as before', (text) => expect(clean(text)).toBe(JSON.stringify({ 'app.conf': text })))

  it.each([
    ['quotes', '\\"a'],
    ['lines', 'a: \\"b\\\\n'],
    ['names', '\\"password\\": \\"'],
    ['letters', '\\u0070assword'],
    ['entities', '&lt;password&gt;'],
    ['backslashes', '\\'],
    ['pieces', '"\\n" '],
    ['keys in lines', `LS0tLS1CRUdJTi${'A'.repeat(40)}\\n`],
  ])('1 MB of it is looked through in time: %s', (_, part) => {
    const text = part.repeat(2 ** 20 / part.length)
    const since = process.cpuUsage()
    clean(text)
    expect(cpuMs(since)).toBeLessThan(4_000)
  })
})

describe('a private key that is packed, in lines', () => {
  const body = Array.from({ length: 12 }, (_, i) => Buffer.from(`${i}`.repeat(48)).toString('base64')).join('\n')
  const packed = (what: string) =>
    Buffer.from(`-----BEGIN ${what}-----\n${body}\n-----END ${what}-----\n`).toString('base64')
  const between: Readonly<Record<string, (lines: string[]) => string>> = {
    'escaped newlines and indentation': (lines) => `conf: "tls:\\n  k: |\\n    ${lines.join('\\n    ')}\\n"`,
    'escaped newlines': (lines) => `{"x":"${lines.join('\\n')}",}`,
    'newlines that are escaped twice': (lines) => `{"x":"${lines.join('\\\\n')}",}`,
    'newlines of Windows, escaped': (lines) => `{"x":"${lines.join('\\r\\n')}",}`,
    'newlines of Windows': (lines) => `k: |\r\n  ${lines.join('\r\n  ')}\r\n`,
    items: (lines) => `k:\n${lines.map((line) => `- ${line}`).join('\n')}`,
    'quoted items': (lines) => `k: [\n${lines.map((line) => `  "${line}",\n`).join('')}]`,
    comments: (lines) => lines.map((line) => `# ${line}`).join('\n'),
    'quotes and plus': (lines) => lines.map((line) => `"${line}" +`).join('\n'),
    'backslashes at the end of lines': (lines) => `k="${lines.join('\\\n')}"`,
    'letters of XML': (lines) => `<k>${lines.join('&#10;')}</k>`,
    'more letters of XML': (lines) => `<k>${lines.join('&#xA;')}</k>`,
    blanks: (lines) => `k ${lines.join(' ')}`,
    'blanks at the end of lines': (lines) => `k\n${lines.join(' \n')}`,
    'empty lines': (lines) => `k\n${lines.join('\n\n')}`,
  }

  it.each(Object.entries(between))('is taken out, with %s', (_, put) => {
    for (const width of [20, 32, 64, 76])
      for (const what of ['RSA PRIVATE KEY', 'PRIVATE KEY', 'ENCRYPTED PRIVATE KEY']) {
        const lines = packed(what).match(new RegExp(`.{1,${width}}`, 'g'))!
        const left = clean(put(lines))
        for (const line of lines.filter(({ length }) => length > 12)) expect(left).not.toContain(line.slice(1, -1))
      }
  })

  it.each(Object.entries(between))('is told from a certificate, with %s', (_, put) => {
    const text = put(packed('CERTIFICATE').match(/.{1,64}/g)!)
    expect(clean(text)).toBe(JSON.stringify({ 'app.conf': text }))
  })

  it('leaves the names and certificates around it', () => {
    const [key, certificate] = [packed('PRIVATE KEY'), packed('CERTIFICATE')]
    const text = `certificate-authority-data: ${certificate}\nuser-of-it: ${key}\nclient-certificate-data: ${certificate}`
    expect(clean(text)).toBe(JSON.stringify({ 'app.conf': text.replace(key, '[redacted]') }))
  })
})

describe('keys of maps', () => {
  const pem = '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n'
  it.each([
    `ghp_abcdefghijklmnopqrstuvwxyz${SECRET}`,
    `glpat-abcdefghij${SECRET}`,
    `${pem}${SECRET}`,
    Buffer.from(pem + SECRET.repeat(20)).toString('base64'),
    `password=${SECRET}`,
    `Bearer ${SECRET}`,
    `root:${SECRET}@tcp(db)/x`,
  ])('are looked through: %j', (key) => {
    expect(clean('x', key)).not.toContain(key.slice(-11))
    expect(clean(JSON.stringify({ [key]: 1, b: 2 }))).not.toContain(key.slice(-11))
  })

  it('stay where they are none', () => {
    const text = JSON.stringify({
      'deployment.kubernetes.io/revision': '1',
      'a=b': 1,
      matchExpressions: [{ key: 'x y' }],
    })
    expect(clean(text)).toBe(JSON.stringify({ 'app.conf': text }))
  })
})
