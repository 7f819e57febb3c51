@echo off
rem Starts the server of the plugin on Windows, as the file sessions-mcp does on other systems:
rem `sessions mcp`, from PATH or from where installers put it. It always ends with 0. If the program
rem is missing, it answers the client with what to install.
setlocal EnableExtensions DisableDelayedExpansion

set "program="
for %%F in (sessions.exe sessions.cmd) do call :take "%%~$PATH:F"
call :take "%USERPROFILE%\.local\bin\sessions.exe"
call :take "%USERPROFILE%\.cargo\bin\sessions.exe"
call :take "%USERPROFILE%\scoop\shims\sessions.exe"
call :take "%LOCALAPPDATA%\Microsoft\WinGet\Links\sessions.exe"
call :take "%APPDATA%\npm\sessions.cmd"
if not defined program goto missing
call "%program%" mcp
exit /b 0

rem Other programs may have the same name: only ours has the command.
:take
if defined program exit /b 0
if "%~1"=="" exit /b 0
if not exist "%~1" exit /b 0
call "%~1" mcp --help >nul 2>nul <nul
if not errorlevel 1 set "program=%~1"
exit /b 0

:missing
set "hint=sessions is not installed. Install the package @PACKAGE@ as @REPOSITORY@ describes"
echo %hint%>&2
rem The first line is the client's `initialize`. It is refused with the reason.
powershell -NoProfile -Command "$id = $null; try { $id = ([Console]::In.ReadLine() | ConvertFrom-Json).id } catch {}; @{ jsonrpc = '2.0'; id = $id; error = @{ code = -32000; message = $env:hint } } | ConvertTo-Json -Compress"
exit /b 0
