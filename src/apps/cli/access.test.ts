import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ExplainOptions, explain } from './access.ts'
import { testPolicies } from './access-test.ts'

const policies = `
apiVersion: clusterpulse.io/v1alpha1
kind: MonitorAccessPolicy
metadata: { name: developers, namespace: clusterpulse }
spec:
  identity: { subjects: { groups: [developers], users: [carol@example.com] } }
  access: { effect: Allow }
  scope:
    clusters:
      rules:
        - selector: { matchNames: ["dev-*"] }
          permissions: { view: true }
          resources:
            - { type: namespaces, visibility: filtered, filters: { names: { denied: ["kube-*"] } } }
  lifecycle: { validity: { notAfter: "2027-01-01T00:00:00Z" } }
---
apiVersion: clusterpulse.io/v1alpha1
kind: MonitorAccessPolicy
metadata: { name: no-prod }
spec:
  identity: { subjects: { groups: [contractors] }, priority: 300 }
  access: { effect: Deny }
  scope: { clusters: { rules: [{ selector: { matchLabels: { environment: prod } } }] } }
---
apiVersion: clusterpulse.io/v1alpha1
kind: ClusterConnection
metadata: { name: dev-prod }
spec: { endpoint: https://x, credentialsRef: { name: x }, labels: { environment: prod } }
`

let folder = ''
const file = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'access-cli-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const ask = (changes: Partial<ExplainOptions>) =>
  explain({
    groups: [],
    labels: [],
    action: 'view',
    files: [file('policies.yaml', policies)],
    semantics: 'strict',
    output: 'text',
    server: '',
    ...changes,
  })

describe('access explain on files', () => {
  it('names the deciding policy and rule, and what was passed over', async () => {
    const { text } = await ask({ groups: ['developers', 'contractors'], cluster: 'dev-prod' })
    expect(text).toMatch(
      /deny\n.*Denied by policy no-prod\n.*rule 0, selected by labels\n.*passed over clusterpulse\/dev/,
    )
  })

  it('says of one item whether it is shown, and why', async () => {
    const { text } = await ask({
      as: 'x',
      email: 'carol@example.com',
      cluster: 'dev-1',
      type: 'namespaces',
      name: 'kube-system',
    })
    expect(text).toMatch(/this item is hidden/)
  })

  it('answers for every cluster the files declare, as JSON with the shape of the API', async () => {
    const { text } = await ask({ groups: ['developers'], output: 'json' })
    expect(JSON.parse(text)).toEqual([
      expect.objectContaining({ question: expect.objectContaining({ cluster: 'dev-prod' }), result: 'partial' }),
    ])
  })

  it('looks at another moment when asked', async () => {
    const later = { groups: ['developers'], cluster: 'dev-1', at: '2027-01-01T00:00:01Z' }
    expect((await ask(later)).text).toMatch(/deny[\s\S]*passed over.*expired/)
  })

  it.each<[string, Partial<ExplainOptions>, RegExp]>([
    ['nobody to ask about', { cluster: 'dev-1' }, /--as/],
    ['a label that is no pair', { as: 'x', cluster: 'a', labels: ['x'] }, /key=value/],
    ['a time that is none', { as: 'x', cluster: 'a', at: 'soon' }, /--at soon/],
    ['a file that is not there', { as: 'x', cluster: 'a', files: ['/nowhere.yaml'] }, /nowhere\.yaml cannot be read/],
  ])('refuses %s with what to do', async (_, options, why) => {
    await expect(ask(options)).rejects.toThrow(why)
  })

  it('refuses text that is no YAML with its place', async () => {
    await expect(ask({ as: 'x', cluster: 'a', files: [file('bad.yaml', 'a: [1,\nb: }')] })).rejects.toThrow(/line \d/)
  })
})

describe('access test', () => {
  const run = (cases: string, more = '') =>
    testPolicies({
      files: [file('tested.yaml', policies + more)],
      cases: file('cases.yaml', cases),
      semantics: 'strict',
      output: 'text',
    })

  it('passes what is met', async () => {
    const answer = await run(`
clusters: [{ name: dev-1, labels: { environment: dev } }]
cases:
  - name: developers
    groups: [developers]
    sees: [dev-1]
    hides: [prod-1]
    checks:
      - { cluster: dev-1, type: namespaces, name: kube-system, expect: hidden }
      - { cluster: dev-1, expect: partial, decidedBy: clusterpulse/developers }
      - { cluster: dev-1, action: view_metrics, expect: deny }
`)
    expect(answer).toMatchObject({ failed: false, text: expect.stringMatching(/1 passed, 0 failed/) })
  })

  it('fails what is not, with expected, got and why', async () => {
    const answer = await run('cases: [{ name: wrong, as: alice, sees: [dev-1] }]')
    expect(answer.failed).toBe(true)
    expect(answer.text).toMatch(
      /FAIL {2}wrong\n.*dev-1 \(view\): expected shown, got hidden: No matching policies found/,
    )
  })

  it('fails where a policy has an error, whatever the cases say', async () => {
    const broken = policies.replaceAll('developers', 'other').replace('effect: Allow', 'effect: Perhaps')
    const answer = await run('cases: [{ name: nobody, as: alice, hides: [dev-1] }]', `---${broken}`)
    expect(answer).toMatchObject({ failed: true, text: expect.stringMatching(/2 errors in policies/) })
  })

  it('refuses cases it does not understand: a misspelt word would test nothing', async () => {
    await expect(run('cases: [{ name: x, seees: [dev-1] }]')).rejects.toThrow(/cases\.yaml: /)
  })
})
