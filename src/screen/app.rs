//! The loop of a screen: events of the terminal and answers of the threads in, drawing out.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, KeyEvent, KeyEventKind, MouseButton, MouseEventKind};
use schemas::{Provider, Timestamp, ToolError};

use super::actions::{MarkdownExport, SessionAction};
use super::latest::LatestWorker;
use super::loader::{LoadExtent, LoadRequest, read_conversation, start_loader};
use super::picker::{FinderAnswer, FinderRequest, Picker, PickerEffect, start_finder};
use super::popup::Popup;
use super::reader::{Reader, ReaderEffect};
use super::setup::{EnterAction, ScreenEnd, ScreenRefresh, ScreenSetup};
use super::terminal::{Screen, ScreenWaker};
use super::theme::Theme;
use crate::output::conversation_blocks::Conversation;
use tools::{Call, Tools};

/// The longest wait for an event while an answer of a thread may arrive, which ends the wait where that
/// is possible.
const BUSY_WAIT: Duration = Duration::from_millis(4);

/// The longest wait for an event otherwise. Signals are noticed after it.
const IDLE_WAIT: Duration = Duration::from_millis(80);

/// The time between two checks of the logs.
const REFRESH_INTERVAL: Duration = Duration::from_secs(3);

/// The lines by which the wheel scrolls a conversation.
const WHEEL_LINES: isize = 3;

/// Shows the picker until the user leaves it.
///
/// # Errors
/// Fails if the terminal cannot be read or written.
pub(crate) fn run_picker(setup: &ScreenSetup) -> io::Result<ScreenEnd> {
    let screen = Screen::open()?;
    let mut app = App::new(setup, screen)?;
    let providers = known_providers(&setup.tools);
    let theme = Theme::new(setup.has_color);
    let zone = setup.zone.clone();
    let project = setup.project.clone();
    app.picker = Some(Picker::new(theme, zone, setup.enter, project, providers));
    app.run()
}

/// Shows a session until the user leaves it.
///
/// # Errors
/// Fails if the session cannot be read. The result inside fails if the terminal cannot be used.
pub(crate) fn run_reader(
    setup: &ScreenSetup,
    session_id: &str,
) -> Result<io::Result<ScreenEnd>, ToolError> {
    let request = LoadRequest { session_id: session_id.to_owned(), extent: LoadExtent::Whole };
    let conversation = Arc::new(read_conversation(&setup.tools, &request, &|| false)?);
    Ok(show_reader(setup, conversation))
}

fn show_reader(setup: &ScreenSetup, conversation: Arc<Conversation>) -> io::Result<ScreenEnd> {
    let screen = Screen::open()?;
    let mut app = App::new(setup, screen)?;
    app.open_reader(conversation, "", None)?;
    app.run()
}

/// Returns the agents that have sessions, the one with the most sessions first.
fn known_providers(tools: &Tools) -> Vec<Provider> {
    let call = Call::new(Timestamp::now(), &|| false);
    let Ok(snapshot) = tools.snapshot(&call) else { return Vec::new() };
    let mut counts: Vec<(usize, Provider)> = Vec::new();
    for provider in Provider::ALL {
        let sessions = snapshot.sessions().iter();
        let own = sessions.filter(|row| row.provider == *provider && row.is_conversation);
        counts.push((own.count(), *provider));
    }
    counts.retain(|(count, _)| *count > 0);
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    counts.into_iter().map(|(_, provider)| provider).collect()
}

/// The screens and the threads that work for them.
struct App<'a> {
    setup: &'a ScreenSetup,
    screen: Screen,
    theme: Theme,
    picker: Option<Picker>,
    reader: Option<Reader>,
    popup: Option<Popup>,
    message: Option<String>,
    export: MarkdownExport,
    answers: Receiver<WorkerAnswer>,
    finder: LatestWorker<FinderRequest>,
    loader: LatestWorker<LoadRequest>,
    refresher: LatestWorker<()>,
    /// The text and filters of the last request to the finder.
    asked: Option<(String, String)>,
    /// True if the last request only repeats the one before, because the store changed.
    is_repeated: bool,
    /// True if the store changed after the preview was read.
    is_preview_old: bool,
    /// The last request to the loader, until it is answered.
    loading: Option<LoadRequest>,
    /// The session that could not be read. It is not tried again while it is selected.
    unreadable: Option<String>,
    /// True if the first session that is found is the chosen one.
    chooses_when_found: bool,
    /// True if the session that is being read is to be opened.
    opens_when_read: bool,
    generation: Option<u64>,
    last_refresh: Option<Instant>,
}

impl<'a> App<'a> {
    fn new(setup: &'a ScreenSetup, screen: Screen) -> io::Result<Self> {
        let (send, answers) = channel();
        let tools = Arc::clone(&setup.tools);
        let found = AnswerSender::new(send.clone(), &screen)?;
        let finder = start_finder(Arc::clone(&tools), setup.zone.clone(), move |answer| {
            found.deliver(WorkerAnswer::Found(answer));
        })?;
        let read = AnswerSender::new(send.clone(), &screen)?;
        let loader = start_loader(Arc::clone(&tools), move |request, conversation| {
            read.deliver(WorkerAnswer::Read(request, conversation));
        })?;
        let refreshed = AnswerSender::new(send, &screen)?;
        let refresh = setup.refresh;
        let refresher = LatestWorker::start("refresher", move |(), _| {
            if refresh == ScreenRefresh::WhileOpen {
                tools.refresh_store();
            }
            let call = Call::new(Timestamp::now(), &|| false);
            if let Ok(snapshot) = tools.snapshot(&call) {
                refreshed.deliver(WorkerAnswer::Refreshed(snapshot.manifest().generation));
            }
        })?;
        Ok(Self {
            setup,
            screen,
            theme: Theme::new(setup.has_color),
            picker: None,
            reader: None,
            popup: None,
            message: None,
            export: MarkdownExport::default(),
            answers,
            finder,
            loader,
            refresher,
            asked: None,
            is_repeated: false,
            is_preview_old: false,
            loading: None,
            unreadable: None,
            chooses_when_found: false,
            opens_when_read: false,
            generation: None,
            last_refresh: None,
        })
    }

    /// Runs until the user leaves.
    fn run(&mut self) -> io::Result<ScreenEnd> {
        let mut has_changed = true;
        loop {
            self.send_requests();
            if std::mem::take(&mut has_changed) {
                self.draw()?;
            }
            let wait = if self.is_waiting() { BUSY_WAIT } else { IDLE_WAIT };
            for event in self.screen.read_events(wait)? {
                has_changed = true;
                if let Some(end) = self.handle_event(event)? {
                    return Ok(end);
                }
            }
            while let Ok(answer) = self.answers.try_recv() {
                has_changed = true;
                if let Some(end) = self.handle_answer(answer)? {
                    return Ok(end);
                }
            }
            if let Some(code) = self.screen.signal_exit_code() {
                return Ok(ScreenEnd::Signal(code));
            }
        }
    }

    fn is_waiting(&self) -> bool {
        self.loading.is_some() || self.picker.as_ref().is_some_and(Picker::is_waiting)
    }

    /// Asks the threads for what the screen needs.
    fn send_requests(&mut self) {
        let Some(picker) = &mut self.picker else { return };
        let question = picker.question();
        if self.asked.as_ref() != Some(&question) {
            self.asked = Some(question);
            self.is_repeated = false;
            self.finder.send(picker.next_request());
        }
        if let Some(id) = picker.selected_id() {
            let extent = if self.opens_when_read {
                LoadExtent::Whole
            } else {
                LoadExtent::Preview(picker.selected_event())
            };
            let request = LoadRequest { session_id: id.to_owned(), extent };
            let is_read = !self.is_preview_old
                && picker.previewed().is_some_and(|read| request.is_met_by(read));
            let is_unreadable = self.unreadable.as_deref() == Some(id);
            if !is_read && !is_unreadable && self.loading.as_ref() != Some(&request) {
                self.loading = Some(request.clone());
                self.loader.send(request);
            }
        }
        if self.last_refresh.is_none_or(|last| last.elapsed() >= REFRESH_INTERVAL) {
            self.last_refresh = Some(Instant::now());
            self.refresher.send(());
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let Self { screen, picker, reader, popup, message, theme, .. } = self;
        let message = message.as_deref();
        screen.draw(|frame| {
            match (reader, picker) {
                (Some(reader), _) => {
                    reader.resize(frame.area());
                    reader.render(frame, message);
                }
                (None, Some(picker)) => picker.render(frame, message),
                (None, None) => {}
            }
            if let Some(popup) = popup {
                popup.render(frame, *theme);
            }
        })
    }

    fn handle_answer(&mut self, answer: WorkerAnswer) -> io::Result<Option<ScreenEnd>> {
        match answer {
            WorkerAnswer::Found(answer) => {
                if let Some(picker) = &mut self.picker {
                    picker.show_answer(answer, self.is_repeated);
                    if self.chooses_when_found && !picker.is_waiting() {
                        self.chooses_when_found = false;
                        return self.choose_selected();
                    }
                }
            }
            WorkerAnswer::Read(request, conversation) => {
                if self.loading.as_ref() == Some(&request) {
                    self.loading = None;
                }
                match conversation {
                    Ok(conversation) => self.show_read(conversation)?,
                    Err(error) => {
                        self.message = Some(error.message);
                        self.unreadable = Some(request.session_id);
                    }
                }
            }
            WorkerAnswer::Refreshed(generation) => {
                let has_changed = self.generation.is_some_and(|known| known != generation);
                self.generation = Some(generation);
                if let (true, Some(picker)) = (has_changed, &mut self.picker) {
                    self.is_repeated = true;
                    self.finder.send(picker.next_request());
                    self.is_preview_old = true;
                    // What is being read may be old, too.
                    self.loading = None;
                }
            }
        }
        Ok(None)
    }

    /// Shows a conversation that was read as the preview, or opens it if the user asked for it.
    fn show_read(&mut self, conversation: Arc<Conversation>) -> io::Result<()> {
        let is_whole = conversation.is_whole;
        self.is_preview_old = false;
        if let Some(picker) = &mut self.picker {
            picker.show_preview(conversation);
        }
        if is_whole && std::mem::take(&mut self.opens_when_read) {
            return self.open_selected();
        }
        Ok(())
    }

    fn handle_event(&mut self, event: Event) -> io::Result<Option<ScreenEnd>> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.handle_key(key),
            Event::Paste(text) => {
                match (&mut self.reader, &mut self.picker) {
                    (Some(reader), _) => reader.handle_paste(&text),
                    (None, Some(picker)) => picker.handle_paste(&text),
                    (None, None) => {}
                }
                Ok(None)
            }
            Event::Mouse(mouse) if self.popup.is_none() => {
                match (&mut self.reader, &mut self.picker) {
                    (Some(reader), _) => {
                        match mouse.kind {
                            MouseEventKind::ScrollDown => reader.scroll_by(WHEEL_LINES),
                            MouseEventKind::ScrollUp => reader.scroll_by(-WHEEL_LINES),
                            MouseEventKind::Down(MouseButton::Left) => {
                                reader.switch_block_at(mouse.row);
                            }
                            MouseEventKind::Down(_)
                            | MouseEventKind::Up(_)
                            | MouseEventKind::Drag(_)
                            | MouseEventKind::Moved
                            | MouseEventKind::ScrollLeft
                            | MouseEventKind::ScrollRight => {}
                        }
                        Ok(None)
                    }
                    (None, Some(picker)) => {
                        let effect = picker.handle_mouse(mouse);
                        self.apply_picker_effect(effect)
                    }
                    (None, None) => Ok(None),
                }
            }
            // The screen is drawn with its new size after every event.
            Event::Resize(..)
            | Event::FocusGained
            | Event::FocusLost
            | Event::Key(_)
            | Event::Mouse(_) => Ok(None),
        }
    }

    fn handle_key(&mut self, key: KeyEvent) -> io::Result<Option<ScreenEnd>> {
        self.message = None;
        self.chooses_when_found = false;
        self.opens_when_read = false;
        if self.popup.take().is_some() {
            return Ok(None);
        }
        if let Some(reader) = &mut self.reader {
            let effect = reader.handle_key(key);
            return self.apply_reader_effect(effect);
        }
        let Some(picker) = &mut self.picker else { return Ok(Some(ScreenEnd::Closed)) };
        let effect = picker.handle_key(key);
        self.apply_picker_effect(effect)
    }

    fn apply_picker_effect(&mut self, effect: PickerEffect) -> io::Result<Option<ScreenEnd>> {
        match effect {
            PickerEffect::None => Ok(None),
            PickerEffect::Close => Ok(Some(ScreenEnd::Closed)),
            PickerEffect::ShowHelp => {
                self.popup = Some(Popup::picker_keys(self.setup.enter));
                Ok(None)
            }
            PickerEffect::Choose => self.choose_found(),
            PickerEffect::Open => self.open_selected().map(|()| None),
            PickerEffect::Run(action) => self.run_action(action),
        }
    }

    fn apply_reader_effect(&mut self, effect: ReaderEffect) -> io::Result<Option<ScreenEnd>> {
        match effect {
            ReaderEffect::None => {}
            ReaderEffect::Close => {
                self.reader = None;
                if self.picker.is_none() {
                    return Ok(Some(ScreenEnd::Closed));
                }
            }
            ReaderEffect::ShowHelp => self.popup = Some(Popup::reader_keys()),
            ReaderEffect::Say(message) => self.message = Some(message),
            ReaderEffect::Run(action) => return self.run_action(action),
        }
        Ok(None)
    }

    /// Does with the selected session what Enter does. If the typed text is still being searched for,
    /// it waits, and takes the first session that is found.
    fn choose_found(&mut self) -> io::Result<Option<ScreenEnd>> {
        let Some(picker) = &self.picker else { return Ok(None) };
        if picker.is_waiting() || self.asked.as_ref() != Some(&picker.question()) {
            self.chooses_when_found = true;
            return Ok(None);
        }
        self.choose_selected()
    }

    fn choose_selected(&mut self) -> io::Result<Option<ScreenEnd>> {
        match self.setup.enter {
            EnterAction::Open => self.open_selected().map(|()| None),
            EnterAction::Resume => self.run_action(SessionAction::Resume),
            EnterAction::Forget => {
                let selected = self.picker.as_ref().and_then(Picker::selected_session);
                Ok(selected.map(|session| ScreenEnd::Forget(session.session_id.clone())))
            }
        }
    }

    /// Opens the selected session, as soon as it is read.
    fn open_selected(&mut self) -> io::Result<()> {
        let Some(picker) = &self.picker else { return Ok(()) };
        let whole = picker.previewed().filter(|conversation| conversation.is_whole);
        let Some(conversation) = whole.map(Arc::clone) else {
            self.opens_when_read = picker.selected_id().is_some();
            return Ok(());
        };
        let text = picker.text().to_owned();
        let event = picker.selected_event();
        self.open_reader(conversation, &text, event)
    }

    fn open_reader(
        &mut self,
        conversation: Arc<Conversation>,
        text: &str,
        event: Option<u32>,
    ) -> io::Result<()> {
        let zone = self.setup.zone.clone();
        let area = self.screen.area()?;
        self.reader = Some(Reader::open(conversation, text, event, self.theme, zone, area));
        Ok(())
    }

    /// Runs an action on the session of the reading view, or on the selected one.
    fn run_action(&mut self, action: SessionAction) -> io::Result<Option<ScreenEnd>> {
        let read = self.reader.as_ref().map(|reader| &reader.conversation().session);
        let selected = || self.picker.as_ref().and_then(Picker::selected_session);
        let Some(session) = read.or_else(selected) else { return Ok(None) };
        let id = session.session_id.clone();
        match action {
            SessionAction::Resume => return Ok(Some(ScreenEnd::Resume(id))),
            SessionAction::ShowCost => self.popup = Some(Popup::cost(session)),
            SessionAction::CopyId => {
                self.screen.copy_to_clipboard(&id)?;
                self.message = Some(format!("copied {id} to the clipboard"));
            }
            SessionAction::Export => {
                self.message = Some(self.export.run(self.setup, &id));
            }
        }
        Ok(None)
    }
}

/// An answer of one of the threads.
enum WorkerAnswer {
    Found(FinderAnswer),
    Read(LoadRequest, Result<Arc<Conversation>, ToolError>),
    /// The logs were checked; the store has this generation now.
    Refreshed(u64),
}

/// Passes the answers of a thread to the loop.
struct AnswerSender {
    send: Sender<WorkerAnswer>,
    waker: ScreenWaker,
}

impl AnswerSender {
    /// Creates the sender for a thread that works for `screen`.
    ///
    /// # Errors
    /// Fails if the system has no file handle left.
    fn new(send: Sender<WorkerAnswer>, screen: &Screen) -> io::Result<Self> {
        Ok(Self { send, waker: screen.waker()? })
    }

    /// Passes an answer to the loop, and ends its wait. The screen may have ended meanwhile.
    fn deliver(&self, answer: WorkerAnswer) {
        let _ = self.send.send(answer);
        self.waker.wake();
    }
}
