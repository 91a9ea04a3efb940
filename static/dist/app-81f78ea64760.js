// What the pages cannot do as HTML alone. Everything is found by id or data attribute when it is
// needed, because the stream replaces elements at any time. Nothing here builds markup.
(() => {
  'use strict';

  const $ = (selector, root = document) => root.querySelector(selector);
  const on = (name, handler) => document.addEventListener(name, handler);
  const stream = () => $('#stream');

  // The stream: every fragment carries the sequence up to which the page is then complete.

  const SILENCE = 45000; // the server pings every 15 s
  let connection = null;
  let heard = Date.now();
  let behind = 0;

  on('htmx:sse:after:connection', (e) => {
    connection = e.detail.connection;
    heard = Date.now();
    banner(null);
  });

  on('htmx:sse:before:message', (e) => {
    const { event, data, id } = e.detail.message;
    const element = stream();
    heard = Date.now();
    if (!element) return;
    const seen = Number(element.dataset.seq);
    if (event === 'ping') {
      // The second ping in a row that names an event which has not come: the stream lost it.
      behind = Number(data) > seen ? behind + 1 : 0;
      if (behind > 1) reconnect();
      return;
    }
    if (event === 'reset') location.reload();
    if (event === 'auth') signIn();
    if (event || id === '') return;
    // A message without an id of its own has the last one's, so only an older one is a repetition.
    if (Number(id) < seen) e.preventDefault();
    else element.dataset.seq = id;
  });

  on('htmx:sse:error', (e) => failed(e.detail.status));

  function failed(status) {
    if (status === 401 || status === 403) signIn();
    else if (status === 404 || status === 410) {
      stream()?.remove();
      banner('This session is gone. Reload the page.');
    } else banner('Reconnecting…');
  }

  function reconnect() {
    behind = 0;
    heard = Date.now();
    connection?.reader?.cancel();
  }

  function signIn() {
    location.href = stream()?.dataset.login || '/login?return_to=' + encodeURIComponent(location.pathname);
  }

  function banner(words) {
    const element = $('#connection');
    if (!element) return;
    element.hidden = words === null;
    if (words !== null) $('[data-text]', element).textContent = words;
  }

  addEventListener('offline', () => stream() && banner('Offline. The page goes on when the network is back.'));
  addEventListener('online', reconnect);
  // A page out of the back/forward cache may belong to somebody who has signed out since.
  addEventListener('pageshow', (e) => e.persisted && location.reload());

  // Swaps.

  let atBottom = true;

  on('htmx:before:swap', (e) => {
    const { ctx, tasks } = e.detail;
    atBottom = innerHeight + scrollY > document.documentElement.scrollHeight - 80;
    for (const task of tasks) {
      // Appending what is there, or replacing a turn that is not, becomes the other of the two.
      const id = task.fragment.firstElementChild?.id;
      const there = id && document.getElementById(id);
      if (task.swapSpec.style === 'beforeend' && there) {
        task.target = there;
        task.swapSpec.style = 'outerMorph';
      } else if (task.swapSpec.style === 'outerMorph' && !task.target && id?.startsWith('msg-')) {
        task.target = $('#timeline');
        task.swapSpec.style = 'beforeend';
      }
    }
    // htmx carries the style of an element over to its successor, which the page's policy forbids; a
    // text area has one once somebody has changed its height.
    for (const e of document.querySelectorAll('textarea[style]')) e.removeAttribute('style');
    const form = ctx.sourceElement;
    if (form?.id === 'composer' && ctx.response?.status === 200) drop(form);
  });

  on('htmx:after:swap', (e) => {
    tick();
    announce();
    const source = e.detail.ctx.sourceElement;
    if (source?.id === 'composer') {
      $('#message')?.focus();
      bottom();
    } else if (source?.id === 'stream') {
      if (atBottom) bottom();
      else if ($('[data-follow]')) $('[data-follow]').hidden = false;
    }
  });

  function bottom() {
    scrollTo(0, document.documentElement.scrollHeight);
    if ($('[data-follow]')) $('[data-follow]').hidden = true;
  }

  addEventListener('scroll', () => {
    const button = $('[data-follow]');
    if (button && innerHeight + scrollY > document.documentElement.scrollHeight - 80) button.hidden = true;
  }, { passive: true });

  // The state in words for screen readers, at most every five seconds.
  let spoken = '';
  let speaking = 0;

  function announce() {
    clearTimeout(speaking);
    speaking = setTimeout(() => {
      const words = $('#status')?.dataset.say ?? '';
      if (words !== spoken && $('#announcer')) $('#announcer').textContent = spoken = words;
    }, spoken === '' ? 0 : 5000);
  }

  // Requests that failed.

  on('htmx:response:error', (e) => {
    const { ctx } = e.detail;
    const status = ctx.response.status;
    if (ctx.sourceElement === stream()) failed(status);
    else if (ctx.request.method === 'GET' || status === 401) return;
    else if (status === 422 && ctx.sourceElement.hasAttribute('hx-status:422')) return;
    else toast(reason(ctx.text) || 'That did not work (' + status + '). Nothing was changed.');
  });

  on('htmx:error', (e) => {
    const ctx = e.detail.ctx;
    if (!ctx) return;
    if (ctx.sourceElement === stream()) banner('Reconnecting…');
    else if (ctx.request.method !== 'GET') toast('The server does not answer. Nothing was sent.');
  });

  on('htmx:after:request', (e) => {
    const { ctx } = e.detail;
    if (ctx.response.status < 400 && ctx.sourceElement.hasAttribute('data-closes')) ctx.sourceElement.closest('details').open = false;
  });

  const reason = (html) => $('[data-error]', new DOMParser().parseFromString(html ?? '', 'text/html'))?.textContent.trim();

  function toast(words) {
    const element = document.createElement('p');
    element.className = 'toast';
    element.textContent = words;
    $('#toasts').append(element);
    setTimeout(() => element.remove(), 8000);
  }

  // Times. The server's clock counts; this one may be wrong.

  const offset = Number(document.documentElement.dataset.now) - Date.now();

  function elapsed(ms) {
    const s = Math.max(0, Math.floor(ms / 1000));
    const two = (n) => String(n).padStart(2, '0');
    if (s < 60) return s + ' s';
    if (s < 3600) return Math.floor(s / 60) + 'm ' + two(s % 60) + 's';
    return Math.floor(s / 3600) + 'h ' + two(Math.floor((s % 3600) / 60)) + 'm';
  }

  function ago(ms) {
    const minutes = Math.floor(ms / 60000);
    if (minutes < 1) return 'just now';
    if (minutes < 60) return minutes + ' min ago';
    return Math.floor(minutes / 60) + ' h ago';
  }

  function tick() {
    const now = Date.now() + offset;
    // While the stream is cut nobody knows whether what is counted still runs.
    const cut = $('#connection')?.hidden === false;
    if (!cut) for (const e of document.querySelectorAll('[data-since]')) e.textContent = elapsed(now - Number(e.dataset.since));
    for (const e of document.querySelectorAll('[data-ago]')) {
      const age = now - Date.parse(e.dateTime);
      if (age < 86400000) e.textContent = ago(age);
    }
  }

  setInterval(() => {
    if (document.hidden) return;
    tick();
    if (connection && stream() && Date.now() - heard > SILENCE) reconnect();
  }, 1000);

  // Forms: drafts, limits, keys.

  const key = (form) => 'draft:' + form.dataset.draft;
  const drop = (form) => sessionStorage.removeItem(key(form));

  function restore() {
    for (const form of document.querySelectorAll('form[data-draft]')) {
      const draft = sessionStorage.getItem(key(form));
      const box = $('textarea', form);
      if (draft && box.value === '') box.value = draft;
    }
  }

  on('input', (e) => {
    const box = e.target;
    if (box.tagName !== 'TEXTAREA') return;
    const form = box.closest('form[data-draft]');
    if (form) sessionStorage.setItem(key(form), box.value);
    const limit = Number(box.dataset.max);
    const size = limit ? new Blob([box.value]).size : 0;
    box.setCustomValidity(size > limit ? 'This is ' + Math.ceil(size / 1024) + ' KB; a message may have ' + Math.floor(limit / 1024) + ' KB.' : '');
  });

  on('submit', (e) => {
    if (!e.target.matches('[data-once]')) return;
    if (e.target.dataset.draft) drop(e.target);
    setTimeout(() => e.target.querySelectorAll('button').forEach((b) => { b.disabled = true; }));
  });

  let escaped = 0;

  on('keydown', (e) => {
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey) && e.target.tagName === 'TEXTAREA') {
      e.preventDefault();
      e.target.form?.requestSubmit();
    }
    if (e.key !== 'Escape') return;
    const menu = $('[data-menu][open]');
    if (menu) {
      menu.open = false;
      $('summary', menu).focus();
    } else if (Date.now() - escaped < 700) $('#cancel-form')?.requestSubmit();
    else escaped = Date.now();
  });

  on('click', (e) => {
    for (const menu of document.querySelectorAll('[data-menu][open]')) if (!menu.contains(e.target)) menu.open = false;
    const of = (name) => e.target.closest?.('[data-' + name + ']');
    if (of('follow')) bottom();
    if (of('copy')) copy(of('copy'));
    if (of('resend') && $('#message') && !e.ctrlKey && !e.metaKey && !e.shiftKey) {
      // After what stands there already: a draft is not thrown away.
      e.preventDefault();
      const box = $('#message');
      const text = document.getElementById(of('resend').dataset.resend).innerText.trim();
      box.value = box.value.trim() === '' ? text : box.value.trimEnd() + '\n\n' + text;
      box.focus();
      box.dispatchEvent(new Event('input', { bubbles: true }));
    }
    const tab = of('tab-link');
    if (tab && !e.ctrlKey && !e.metaKey && !e.shiftKey) {
      e.preventDefault();
      $('.session').dataset.tab = tab.dataset.tabLink;
      for (const link of document.querySelectorAll('[data-tab-link]')) link.setAttribute('aria-current', String(link === tab));
    }
  });

  async function copy(button) {
    const label = $('span', button);
    const before = label.textContent;
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).innerText);
      label.textContent = 'Copied';
      setTimeout(() => { label.textContent = before; }, 1500);
    } catch {
      toast('The browser allows copying on https pages only.');
    }
  }

  restore();
  spoken = $('#status')?.dataset.say ?? '';
  if ($('[aria-invalid]')) $('[aria-invalid]').focus();
  else if ($('#timeline') && !location.hash) bottom();
})();
