type Page = { metadata?: { _continue?: string }; items: object[] }
type Request = { limit: number; _continue?: string }

/** What this bench calls of the typed client. */
export function typedClient(
  server: string,
  caData: string,
): {
  listNode(request: Request): Promise<Page>
  listPodForAllNamespaces(request: Request): Promise<Page>
}
