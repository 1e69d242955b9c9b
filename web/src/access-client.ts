import {
  type AccessOfView,
  ApiProblem,
  type ExplanationView,
  type OwnPoliciesView,
  type PermissionsView,
  type PoliciesView,
  type PreviewView,
  type SubjectView,
} from './contract.ts'
import { basePath } from './router.tsx'

export interface ExplainQuestion {
  readonly cluster: string
  readonly action?: 'view' | 'view_metrics'
  readonly type?: string
  readonly name?: string
  readonly namespace?: string
  readonly as?: string
  readonly groups?: string
}

async function call<T>(
  method: 'GET' | 'POST',
  path: string,
  { body, signal }: { body?: unknown; signal?: AbortSignal | undefined } = {},
): Promise<T> {
  let response: Response
  try {
    response = await fetch(`${basePath.replace(/\/$/, '')}${path}`, {
      method,
      credentials: 'same-origin',
      headers: { accept: 'application/json', ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    })
  } catch (cause) {
    if (signal?.aborted) throw cause
    throw new ApiProblem(0, { error: 'the API cannot be reached', code: 'no_answer', requestId: '' }, { cause })
  }
  const answer = (await response.json()) as T
  if (!response.ok) throw new ApiProblem(response.status, answer as never)
  return answer
}

const texts = (values: object): string =>
  new URLSearchParams(Object.entries(values).filter(([, value]) => value !== undefined && value !== '')).toString()

export const accessClient = {
  loginUrl: (returnTo: string): string =>
    `${basePath.replace(/\/$/, '')}/api/v1/auth/login?returnTo=${encodeURIComponent(returnTo)}`,
  password: (username: string, password: string): Promise<{ message: string }> =>
    call('POST', '/api/v1/auth/password', { body: { username, password } }),
  logout: (): Promise<{ message: string; redirect?: string }> => call('POST', '/api/v1/auth/logout', { body: {} }),
  explain: (question: ExplainQuestion, signal?: AbortSignal): Promise<ExplanationView> =>
    call('GET', `/api/v1/auth/explain?${texts(question)}`, { signal }),
  permissions: (signal?: AbortSignal): Promise<PermissionsView> => call('GET', '/api/v1/auth/permissions', { signal }),
  policies: (signal?: AbortSignal): Promise<OwnPoliciesView> => call('GET', '/api/v1/auth/policies', { signal }),
  listPolicies: (signal?: AbortSignal): Promise<PoliciesView> => call('GET', '/api/v2/access/policies', { signal }),
  accessOf: (subject: SubjectView, signal?: AbortSignal): Promise<AccessOfView> =>
    call('POST', '/api/v2/access/seen', { body: subject, signal }),
  viewAs: (subject: SubjectView): Promise<{ message: string }> =>
    call('POST', '/api/v2/access/view-as', { body: subject }),
  endViewAs: (): Promise<{ message: string }> => call('POST', '/api/v2/access/view-as/end', { body: {} }),
  previewPolicies: (
    asked: { manifest: string; remove?: string[]; subjects?: SubjectView[] },
    signal?: AbortSignal,
  ): Promise<PreviewView> => call('POST', '/api/v2/access/preview', { body: asked, signal }),
}
