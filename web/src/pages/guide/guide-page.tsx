import './guide.css'
import guides from 'virtual:guides'
import { type MouseEvent, type ReactNode, useCallback, useEffect } from 'react'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import { useAnswer } from '../../live/use-answer.ts'
import { basePath, guidePath, Link, navigate } from '../../router.tsx'
import { PageHeading } from '../../shell/page-heading.tsx'

/** The guides of this very version, as the hub serves them: no internet is needed. */
export function GuidePage({ name }: { name: string | null }): ReactNode {
  const guide = guides.find((each) => each.name === name)
  if (name === null) {
    return (
      <>
        <PageHeading title="Guides">Guides</PageHeading>
        <GuideList />
      </>
    )
  }
  if (!guide) {
    return (
      <>
        <PageHeading title="No such guide">There is no such guide</PageHeading>
        <Empty title={name}>
          <Link to={guidePath()} className="button">
            All guides
          </Link>
        </Empty>
      </>
    )
  }
  return (
    <>
      <PageHeading title={guide.title} after={<Link to={guidePath()}>All guides</Link>}>
        {guide.title}
      </PageHeading>
      <Text key={guide.name} load={guide.load} />
    </>
  )
}

export function GuideList({ onFollow }: { onFollow?: () => void }): ReactNode {
  const isReference = ({ name }: { name: string }) => name.startsWith('reference/')
  return (
    <div className="guide-list">
      {[
        ['How to', guides.filter((each) => !isReference(each))] as const,
        ['Reference', guides.filter(isReference)] as const,
      ].map(([title, some]) => (
        <section key={title} aria-label={title}>
          <b>{title}</b>
          <ul>
            {some.map(({ name, title }) => (
              <li key={name}>
                <Link to={guidePath(name)} {...(onFollow && { onClick: onFollow })}>
                  {title}
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  )
}

function Text({ load }: { load: (typeof guides)[number]['load'] }): ReactNode {
  const ask = useCallback(() => load().then((module) => module.default.html), [load])
  const [answer, again] = useAnswer(ask)
  const html = answer.state === 'here' ? answer.value : ''
  useEffect(() => {
    if (html !== '' && window.location.hash) document.getElementById(window.location.hash.slice(1))?.scrollIntoView()
  }, [html])
  if (answer.state === 'waiting') return <Skeleton label="Loading the guide" lines={6} />
  if (answer.state === 'failed')
    return <Failure problem={answer.problem} onRetry={again} title="The guide could not be loaded" />
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter on a link is a click
    // biome-ignore lint/security/noDangerouslySetInnerHtml: made of our own guides when the page was built, everything escaped
    <article className="guide" onClick={follow} dangerouslySetInnerHTML={{ __html: html }} />
  )
}

/** A link to another guide stays in the page; all others are the browser's. */
function follow(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest('a') : null
  if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  const guide = `${basePath}guide/`
  if (link.origin !== window.location.origin || !link.pathname.startsWith(guide) || link.hash) return
  event.preventDefault()
  navigate(guidePath(decodeURI(link.pathname.slice(guide.length))))
}
